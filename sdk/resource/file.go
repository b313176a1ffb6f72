// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package resource // import "github.com/lenscol/lenscol/sdk/resource"

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxFile bounds a file that is read, in bytes.
const maxFile = 64 << 10

var (
	errNotRegular = errors.New("no regular file")
	errTooLarge   = fmt.Errorf("larger than %d bytes", maxFile)
)

// open opens a folder that nothing read below it can leave: a link out of it is an error.
func (d *Detector) open(dir string) (*os.Root, error) {
	if d.system.Root != "" {
		dir = filepath.Join(d.system.Root, dir)
	}
	return os.OpenRoot(dir)
}

// read reads a small regular file of the folder. One that is missing is absent, of another that cannot be read says why.
func (d *Detector) read(dir, name string) (string, bool) {
	root, err := d.open(dir)
	if err != nil {
		return "", false
	}
	defer root.Close()
	text, err := readSmall(root, name)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			d.refuse("file:"+filepath.Join(dir, name), cause(err).Error())
		}
		return "", false
	}
	return text, true
}

func readSmall(root *os.Root, name string) (string, error) {
	// Before it is opened: opening a pipe waits for its writer.
	info, err := root.Stat(name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errNotRegular
	}
	file, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	switch {
	case err != nil:
		return "", err
	case len(text) > maxFile:
		return "", errTooLarge
	}
	return string(text), nil
}

// cause is the error without the path, which the caller names.
func cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
