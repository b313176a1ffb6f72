// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package folder // import "github.com/lenscol/lenscol/sdk/broadcast/folder"

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	lens "github.com/lenscol/lenscol/sdk"
	"github.com/lenscol/lenscol/sdk/broadcast/internal/exchange"
)

// open opens a folder, which is made where it is missing. Below what it returns, no name leads out of it.
func open(folder string) (*os.Root, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, final(err)
	}
	if info, err := os.Lstat(folder); err != nil {
		return nil, final(err)
	} else if !info.IsDir() {
		return nil, exchange.Final(errors.New("a link is where the folder should be: remove it"))
	}
	root, err := os.OpenRoot(folder)
	return root, final(err)
}

// final marks what waiting does not mend. A shared file system has other errors that pass.
func final(err error) error {
	if errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EROFS) {
		return exchange.Final(err)
	}
	return err
}

// create makes a file, which must not be there.
func create(root *os.Root, name string, data []byte) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return final(err)
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close()) // NFS writes on close
}

// replace makes a file by way of another name: who opens it finds all of it or nothing. It need not outlive the machine, so
// nothing is synced.
func replace(root *os.Root, name, temporary string, data []byte) error {
	_ = root.Remove(temporary) // of a source that was killed here
	err := create(root, temporary, data)
	if err == nil {
		err = root.Rename(temporary, name)
	}
	if err != nil {
		_ = root.Remove(temporary)
	}
	return err
}

// read reads a plain file of at most lens.MaxBroadcast bytes.
func read(root *os.Root, name string) ([]byte, error) {
	notPlain := exchange.Final(fmt.Errorf("%s is no plain file: remove it", name))
	before, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, notPlain
	}
	// Not blocking: should it be a pipe by now, the open would wait for a writer.
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, final(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !os.SameFile(before, info) {
		return nil, notPlain
	}
	data, err := io.ReadAll(io.LimitReader(file, lens.MaxBroadcast+1))
	if err != nil {
		return nil, err
	}
	if len(data) > lens.MaxBroadcast {
		return nil, exchange.Final(fmt.Errorf("%s has more than %d bytes: a source writes none of that size", name, lens.MaxBroadcast))
	}
	return data, nil
}

// names calls do with each name in the folder until it returns an error.
func names(root *os.Root, do func(name string) error) error {
	folder, err := root.Open(".")
	if err != nil {
		return err
	}
	defer folder.Close()
	for {
		batch, err := folder.Readdirnames(1024)
		for _, name := range batch {
			if err := do(name); err != nil {
				return err
			}
		}
		if err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
	}
}
