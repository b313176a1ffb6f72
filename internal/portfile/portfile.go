// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package portfile writes small files that other processes wait for, mostly shell exports that say where something listens.
package portfile // import "github.com/lenscol/lenscol/internal/portfile"

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Export is a line that sets and exports a variable when a POSIX shell reads it.
func Export(name string, value any) string {
	return fmt.Sprintf("export %s=%s\n", name, quote(fmt.Sprint(value)))
}

// quote quotes text for a POSIX shell where it holds more than plain characters.
func quote(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-+=.,:/@%", r)
	}
	if strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Write writes text beside path and renames it, so that nobody ever sees half of it. Everybody may read it.
func Write(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// RemoveIf removes the file unless another process has written its own there since. No text means that none was written.
func RemoveIf(path, text string) {
	if text == "" {
		return
	}
	if now, err := os.ReadFile(path); err == nil && string(now) == text {
		_ = os.Remove(path)
	}
}
