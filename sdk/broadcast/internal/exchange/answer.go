// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package exchange // import "github.com/lenscol/lenscol/sdk/broadcast/internal/exchange"

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	lens "github.com/lenscol/lenscol/sdk"
)

// answerHead is the length in bytes of what stands before the data: magic, verdict, length of the data as 4 bytes big-endian.
const answerHead = 8 + 1 + 4

// EncodeAnswer writes what a source answers; data is empty unless the verdict is [Here].
func EncodeAnswer(v Verdict, data []byte) []byte {
	b := append(make([]byte, 0, answerHead+len(data)), magic...)
	b = append(b, byte(v))
	b = binary.BigEndian.AppendUint32(b, uint32(len(data)))
	return append(b, data...)
}

// ReadAnswer reads an answer: its data, or the error of its verdict. It reads not a byte beyond, and takes no more memory
// than the data that may be sent.
func ReadAnswer(r io.Reader) ([]byte, error) {
	var head [answerHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if !bytes.HasPrefix(head[:], magic) {
		return nil, errors.New("something else answers than a source of this version")
	}
	if err := Verdict(head[8]).Err(); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[9:])
	if size > lens.MaxBroadcast {
		return nil, fmt.Errorf("an answer of %d bytes is announced: at most %d are taken", size, lens.MaxBroadcast)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, fmt.Errorf("read %d bytes of data: %w", size, err)
	}
	return data, nil
}
