package main

import (
	"encoding/binary"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/go-git/go-billy/v5"
	gonfs "github.com/willscott/go-nfs"
	"github.com/willscott/go-nfs/helpers"
)

// handles names files by their inode numbers, so that a file keeps its handle
// when it is renamed and when the server is started anew; go-nfs's own handles
// are lost then. A number that Linux gives to another file later names that.
type handles struct {
	gonfs.Handler
	directory directory
	mu        sync.Mutex
	paths     map[uint64]string // guarded by mu: where a file was seen last
}

// listings is how many lists of directories the server remembers.
const listings = 64

func newHandles(d directory) *handles {
	h := helpers.NewCachingHandler(helpers.NewNullAuthHandler(d), listings)
	return &handles{Handler: h, directory: d, paths: map[uint64]string{}}
}

const handleLen = 8

func (h *handles) ToHandle(_ billy.Filesystem, path []string) []byte {
	name := strings.Join(path, "/")
	number := h.number(name)
	h.mu.Lock()
	defer h.mu.Unlock()
	if number != 0 {
		h.paths[number] = name
	}
	return binary.BigEndian.AppendUint64(nil, number)
}

func (h *handles) FromHandle(handle []byte) (billy.Filesystem, []string, error) {
	stale := &gonfs.NFSStatusError{NFSStatus: gonfs.NFSStatusStale}
	if len(handle) != handleLen {
		return nil, nil, stale
	}
	number := binary.BigEndian.Uint64(handle)
	h.mu.Lock()
	defer h.mu.Unlock()
	name, seen := h.paths[number]
	if !seen || h.number(name) != number {
		name, seen = h.search(number)
	}
	switch {
	case number == 0 || !seen:
		return nil, nil, stale
	case name == "":
		return h.directory, []string{}, nil
	}
	return h.directory, strings.Split(name, "/"), nil
}

// InvalidateHandle forgets a file that was removed.
func (h *handles) InvalidateHandle(_ billy.Filesystem, handle []byte) error {
	if len(handle) == handleLen {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.paths, binary.BigEndian.Uint64(handle))
	}
	return nil
}

// HandleLimit is how many handles there may be; go-nfs wants to know.
func (h *handles) HandleLimit() int { return 1 << 20 }

// number is a file's inode number, 0 when there is none of that name.
func (h *handles) number(name string) uint64 {
	if name == "" {
		name = "."
	}
	info, err := h.directory.root.Lstat(name)
	if err != nil {
		return 0
	}
	return numberOf(info)
}

func numberOf(info os.FileInfo) uint64 {
	s, _ := info.Sys().(*syscall.Stat_t)
	return s.Ino
}

// search looks all files through. Preconditions: the lock is held.
func (h *handles) search(number uint64) (name string, found bool) {
	clear(h.paths)
	_ = fs.WalkDir(h.directory.root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // gone meanwhile
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if path == "." {
			path = ""
		}
		n := numberOf(info)
		h.paths[n] = path
		if n == number {
			name, found = path, true
		}
		return nil
	})
	return name, found
}
