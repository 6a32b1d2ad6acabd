package vm

import (
	"bytes"
	"fmt"
	"path"
)

// Types of files in an archive, as in st_mode.
const (
	modeDir  = 0o040000
	modeFile = 0o100000
	modeLink = 0o120000
)

// archive is files in the format newc, which the kernel unpacks. Times, owners
// and inode numbers are not the host's, so that the same files give the same
// bytes.
//
// Source: Documentation/driver-api/early-userspace/buffer-format.rst.
type archive struct {
	bytes.Buffer
	inodes int
	dirs   map[string]bool
}

// add adds a file, and before it the directories that it is in. data is its
// content, or a link's target. It must come once only.
func (a *archive) add(name string, mode uint32, data []byte) {
	if dir := path.Dir(name); dir != "." && !a.dirs[dir] {
		a.add(dir, modeDir|0o755, nil)
	}
	if mode&modeDir != 0 {
		if a.dirs == nil {
			a.dirs = map[string]bool{}
		}
		a.dirs[name] = true
	}
	a.inodes++
	a.entry(a.inodes, name, mode, data)
}

// end writes the archive's last entry.
func (a *archive) end() { a.entry(0, "TRAILER!!!", 0, nil) }

func (a *archive) entry(inode int, name string, mode uint32, data []byte) {
	fmt.Fprintf(a, "070701%08X%08X%016X%08X%08X%08X%032X%08X%08X%s\x00",
		inode, mode, 0 /* user, group */, 1 /* link */, 0 /* time */, len(data), 0 /* devices */, len(name)+1, 0, name)
	a.pad(4)
	a.Write(data)
	a.pad(4)
}

// pad adds zero bytes up to a multiple of n.
func (a *archive) pad(n int) {
	for a.Len()%n != 0 {
		a.WriteByte(0)
	}
}
