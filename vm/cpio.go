package vm

import (
	"fmt"
	"io"
	"path"
	"sort"
	"strings"
)

// cpioEntry is a file of an archive.
type cpioEntry struct {
	name string // without a leading slash
	mode uint32 // type and permissions, as st_mode
	data []byte // content, or a link's target
}

// Types of entries, as in st_mode.
const (
	modeDir  = 0o040000
	modeFile = 0o100000
	modeLink = 0o120000
)

// writeCPIO writes an archive in the format newc, which the kernel unpacks.
// Entries are sorted, missing parents added; times, owners and inode numbers
// are not the host's, so that the same files give the same bytes.
//
// Source: Documentation/driver-api/early-userspace/buffer-format.rst.
func writeCPIO(w io.Writer, entries []cpioEntry) error {
	all := map[string]cpioEntry{}
	for _, e := range entries {
		e.name = strings.TrimPrefix(path.Clean("/"+e.name), "/")
		if _, twice := all[e.name]; twice {
			return fmt.Errorf("image: %s is in it twice", e.name)
		}
		all[e.name] = e
	}
	for _, e := range entries {
		for dir := path.Dir(strings.TrimPrefix(path.Clean("/"+e.name), "/")); dir != "."; dir = path.Dir(dir) {
			if _, ok := all[dir]; !ok {
				all[dir] = cpioEntry{name: dir, mode: modeDir | 0o755}
			}
		}
	}
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	sort.Strings(names) // a parent sorts before what is in it
	out := &padder{w: w}
	for i, name := range names {
		out.entry(i+1, all[name])
	}
	out.entry(0, cpioEntry{name: "TRAILER!!!"})
	return out.err
}

type padder struct {
	w   io.Writer
	n   int64
	err error
}

func (p *padder) entry(inode int, e cpioEntry) {
	links := 1
	if e.mode&modeDir != 0 {
		links = 2
	}
	p.write(fmt.Appendf(nil, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		inode, e.mode, 0, 0, links, 0, len(e.data), 0, 0, 0, 0, len(e.name)+1, 0))
	p.write(append([]byte(e.name), 0))
	p.pad()
	p.write(e.data)
	p.pad()
}

func (p *padder) write(b []byte) {
	if p.err != nil {
		return
	}
	var n int
	n, p.err = p.w.Write(b)
	p.n += int64(n)
}

func (p *padder) pad() {
	if rest := p.n % 4; rest != 0 {
		p.write(make([]byte, 4-rest))
	}
}
