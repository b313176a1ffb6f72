// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package instruments // import "github.com/lenscol/lenscol/sdk/instruments"

import (
	"reflect"
	"time"
)

// Values are values by key: integers and floats of any type, durations where the unit is s or ms, and pointers to such. Nil
// is no value.
type Values map[string]any

type numberState int

const (
	isNumber numberState = iota
	isAbsent
	isBad
)

// toNumber reads a value of [Values].
func toNumber(value any, unit string) (float64, numberState) {
	switch v := value.(type) { // the usual ones
	case nil:
		return 0, isAbsent
	case float64:
		return v, isNumber
	case int:
		return float64(v), isNumber
	}
	v := reflect.ValueOf(value)
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return 0, isAbsent
		}
		v = v.Elem()
	}
	if d, ok := v.Interface().(time.Duration); ok {
		if number, ok := inUnit(d, unit); ok {
			return number, isNumber
		}
		return 0, isBad
	}
	switch {
	case v.CanFloat():
		return v.Float(), isNumber
	case v.CanInt():
		return float64(v.Int()), isNumber
	case v.CanUint():
		return float64(v.Uint()), isNumber
	}
	return 0, isBad
}
