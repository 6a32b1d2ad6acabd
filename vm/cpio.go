package vm

import (
	"bytes"
	"path"

	"github.com/u-root/u-root/pkg/cpio"
)

// archive is files in the format newc, which the kernel unpacks, behind the
// archive that it begins with. Times, owners and inode numbers are not the
// host's, so that the same files give the same bytes.
type archive struct {
	bytes.Buffer
	records cpio.RecordWriter
	inodes  uint64
	dirs    map[string]bool
	err     error // the first
}

// newArchive begins with another archive, or with none.
func newArchive(base []byte) *archive {
	a := &archive{Buffer: *bytes.NewBuffer(base), dirs: map[string]bool{".": true}}
	for a.Len()%4 != 0 { // the kernel looks for the next one there
		a.WriteByte(0)
	}
	a.records = cpio.Newc.Writer(a)
	return a
}

// add adds a file, and before it the directories that it is in. data is its
// content, or a link's target. It must come once only.
func (a *archive) add(name string, mode uint64, data []byte) {
	if dir := path.Dir(name); !a.dirs[dir] {
		a.dirs[dir] = true
		a.add(dir, cpio.S_IFDIR|0o755, nil)
	}
	a.inodes++
	a.write(cpio.StaticRecord(data, cpio.Info{Ino: a.inodes, Name: name, Mode: mode, NLink: 1}))
}

func (a *archive) write(r cpio.Record) {
	if err := a.records.WriteRecord(r); a.err == nil {
		a.err = err
	}
}

// end writes the archive's last entry, and returns the first error.
func (a *archive) end() error {
	a.write(cpio.TrailerRecord)
	return a.err
}
