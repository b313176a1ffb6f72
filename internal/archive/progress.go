// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package archive // import "github.com/lenscol/lenscol/internal/archive"

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// Progress is how far a replay came, in a file beside the archive: how many records of each file were acknowledged. A file of an archive is
// only ever appended to, so that number says where to go on, in any layout and compression.
//
// Files are known by their beginning, not by their name alone: an active file that was rotated since goes on under its new
// name, and one whose content is another one begins anew.
type Progress struct {
	stores    []*progressStore
	positions map[string]*position // by Input.Path
}

type progressStore struct {
	path  string
	lock  *flock.Flock
	saved progressFile
	text  []byte // as it was written last
}

// progressFile is what is written. Version 1.
type progressFile struct {
	Version  int         `json:"version"`
	Endpoint string      `json:"endpoint"`
	Filter   string      `json:"filter,omitempty"`
	Files    []*position `json:"files"`
}

// position is how far one file is sent.
type position struct {
	Path      string `json:"path"` // relative to the folder of the progress file where it is below that
	HeadBytes int64  `json:"head_bytes"`
	Head      string `json:"head_sha256"` // of that many bytes at the beginning
	Size      int64  `json:"size"`        // of the file, when it was read last
	Records   int64  `json:"records"`     // acknowledged, or left out by the filter, from the beginning
	Done      bool   `json:"done"`        // all records of the file were, at that size

	claimed bool
}

const headBytes = 64 << 10

// OpenProgress finds the progress of a replay of inputs to an endpoint. Another endpoint, and another filter, have a progress of their own. It
// is kept in the folder that the files were found in, or in file where that is not empty. restart forgets what was there.
func OpenProgress(inputs []Input, endpoint, filter, file string, restart bool) (*Progress, error) {
	p := &Progress{positions: map[string]*position{}}
	sum := sha256.Sum256([]byte(endpoint + "\n" + filter))
	byPath := map[string]*progressStore{}
	of := map[string]*progressStore{}
	for _, in := range inputs {
		if in.Path == Stdin {
			continue
		}
		path := file
		if path == "" {
			folder := in.Root
			if folder == "" {
				folder = filepath.Dir(in.Path)
			}
			path = filepath.Join(folder, ".lenscol-replay-"+hex.EncodeToString(sum[:4])+".json")
		}
		s := byPath[path]
		if s == nil {
			var err error
			if s, err = openStore(path, endpoint, filter); err != nil {
				return nil, errors.Join(err, p.Close())
			}
			byPath[path] = s
			p.stores = append(p.stores, s)
		}
		of[in.Path] = s
	}
	// By name and beginning first, then by the beginning alone: that file was renamed.
	for _, named := range []bool{true, false} {
		for _, in := range inputs {
			if s := of[in.Path]; s != nil && p.positions[in.Path] == nil && !restart {
				if pos := s.find(in, named); pos != nil {
					pos.claimed, pos.Path = true, s.name(in)
					p.positions[in.Path] = pos
				}
			}
		}
	}
	for _, in := range inputs {
		if p.positions[in.Path] == nil {
			pos := &position{claimed: true}
			if s := of[in.Path]; s != nil {
				pos.Path = s.name(in)
				s.add(pos)
			}
			p.positions[in.Path] = pos
		}
	}
	if err := p.save(); err != nil { // Now, rather than behind the first request.
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func openStore(path, endpoint, filter string) (*progressStore, error) {
	s := &progressStore{path: path, lock: flock.New(path + ".lock")}
	locked, err := s.lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("keep the progress in %s: %w; --state names another file", path, err)
	}
	if !locked {
		return nil, fmt.Errorf("%s: another replay to %s is running", path, endpoint)
	}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, errors.Join(err, s.lock.Unlock())
	default:
		if err := json.Unmarshal(text, &s.saved); err != nil || s.saved.Version != 1 {
			return nil, errors.Join(fmt.Errorf("%s: is no progress of a replay; remove it, and all is sent again", path), err, s.lock.Unlock())
		}
		if s.saved.Endpoint != endpoint || s.saved.Filter != filter {
			return nil, errors.Join(fmt.Errorf("%s: is the progress of a replay to %s with the filter %q; name another file with --state", path, s.saved.Endpoint, s.saved.Filter), s.lock.Unlock())
		}
	}
	s.saved.Version, s.saved.Endpoint, s.saved.Filter = 1, endpoint, filter
	return s, nil
}

// name is how the store calls a file.
func (s *progressStore) name(in Input) string {
	path, err := filepath.Abs(in.Path)
	if err != nil {
		return in.Path
	}
	folder, err := filepath.Abs(filepath.Dir(s.path))
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(folder, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

func (s *progressStore) find(in Input, named bool) *position {
	f, err := in.open()
	if err != nil {
		return nil
	}
	defer f.Close()
	for _, pos := range s.saved.Files {
		if !pos.claimed && (!named || pos.Path == s.name(in)) && in.Size >= pos.Size {
			if is, err := pos.isOf(f); is && err == nil {
				return pos
			}
		}
	}
	return nil
}

// add puts a new position in the place of one of the same name, and forgets files that are gone.
func (s *progressStore) add(pos *position) {
	kept := s.saved.Files[:0]
	for _, old := range s.saved.Files {
		path := old.Path
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(s.path), path)
		}
		_, err := os.Stat(path)
		if old.claimed || old.Path != pos.Path && !errors.Is(err, fs.ErrNotExist) {
			kept = append(kept, old)
		}
	}
	s.saved.Files = append(kept, pos)
}

// headOf is the hash of the first n bytes of a file, or of all where it has less.
func headOf(f io.ReaderAt, n int64) (hash string, size int64, err error) {
	h := sha256.New()
	if size, err = io.Copy(h, io.NewSectionReader(f, 0, n)); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}

// isOf tells whether a position is of the file with this content.
func (pos *position) isOf(f io.ReaderAt) (bool, error) {
	head, _, err := headOf(f, pos.HeadBytes)
	return pos.HeadBytes > 0 && head == pos.Head, err
}

// begin is told what is read of an input from now on, nil for standard input. A position that was found is not of a file that took
// the other's name since.
func (p *Progress) begin(in Input, f *os.File) error {
	pos := p.positions[in.Path]
	if f == nil {
		return nil
	}
	is, err := pos.isOf(f)
	if err == nil && !is {
		pos.HeadBytes, pos.Size, pos.Records, pos.Done = 0, 0, 0, false
	}
	if err == nil && pos.HeadBytes < headBytes {
		pos.Head, pos.HeadBytes, err = headOf(f, headBytes)
	}
	return err
}

// sent tells whether a file is done and has not grown since.
func (p *Progress) sent(in Input) bool {
	pos := p.positions[in.Path]
	return pos.Done && pos.Size == in.Size
}

// save writes the progress, whole or not at all.
func (p *Progress) save() error {
	for _, s := range p.stores {
		text, err := json.MarshalIndent(&s.saved, "", "  ")
		if err != nil {
			return err
		}
		if bytes.Equal(text, s.text) {
			continue
		}
		temporary := s.path + ".tmp"
		if err := os.WriteFile(temporary, append(text[:len(text):len(text)], '\n'), 0o600); err != nil {
			return fmt.Errorf("keep the progress: %w; --state names another file", err)
		}
		if err := os.Rename(temporary, s.path); err != nil {
			return fmt.Errorf("keep the progress: %w", err)
		}
		s.text = text
	}
	return nil
}

// Close lets another replay have the progress.
func (p *Progress) Close() error {
	var errs []error
	for _, s := range p.stores {
		errs = append(errs, s.lock.Unlock())
	}
	return errors.Join(errs...)
}
