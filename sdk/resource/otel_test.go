// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"testing"
)

func TestDecode(t *testing.T) {
	attrs, errs := Decode("service.name=a%2Cb, k = v ,empty=,,broken,=x,bad=%zz,k=again")
	var got string
	for _, a := range attrs {
		got += a.Key + "=" + a.Text() + ";"
	}
	if want := "service.name=a,b;k=again;empty=;"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(errs) != 3 {
		t.Errorf("errors %v", errs)
	}
}

func TestMerge(t *testing.T) {
	attrs := []Attribute{{Key: "b", Value: "2,3"}, {Key: "c", Value: int64(4)}, {Key: "a,b", Value: "x"}}
	tests := []struct {
		name, inherited string
		overwrite       bool
		want            string
	}{
		{"nothing inherited", "", false, "b=2%2C3,c=4"},
		{"what is there stays, byte for byte", " a=%7e ,b=1,,torn", false, " a=%7e ,b=1,,torn,c=4"},
		{"overwritten", " a=%7e ,b=1,torn", true, " a=%7e ,b=2%2C3,torn,c=4"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, errs := Merge(tt.inherited, attrs, tt.overwrite)
			if got != tt.want || len(errs) != 1 {
				t.Errorf("got %q, %v, want %q", got, errs, tt.want)
			}
		})
	}
}

func FuzzEncodeDecode(f *testing.F) {
	for _, seed := range []string{"", "a,b=c", "%", " x ", "é\x00", "a+b"} {
		f.Add("key", seed)
	}
	f.Add("a,b", "x")
	f.Add("\xff", "x")
	f.Fuzz(func(t *testing.T, key, value string) {
		text, errs := Encode([]Attribute{{Key: key, Value: value}})
		if len(errs) > 0 {
			return
		}
		attrs, errs := Decode(text)
		if _, _, err := decodeSegment("k=" + escape(value)); err != nil {
			return // not UTF-8
		}
		if len(errs) > 0 || len(attrs) != 1 || attrs[0].Key != key || attrs[0].Text() != value {
			t.Errorf("%q=%q became %q, read as %v, %v", key, value, text, attrs, errs)
		}
	})
}
