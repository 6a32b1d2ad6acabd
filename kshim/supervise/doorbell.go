//go:build linux && (amd64 || arm64)

package supervise

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// A device file that has a number below the window, by dup or SCM_RIGHTS, takes
// writes that nobody holds: they land in its memfd, behind the rings, one after
// the other. POST_SEND, which has no answer but an error, is found there and
// carried out. Other commands by write are not, which is said once.

// logAt is where such writes begin.
const logAt = 1 << 40

// doorbells carries out the writes that have come.
func (r *rings) doorbells() {
	r.log.Lock()
	defer r.log.Unlock()
	for {
		var b [doorbell]byte
		r.mu.Lock()
		n := 0
		if r.memfd >= 0 {
			n, _ = unix.Pread(r.memfd, b[:], logAt+r.read)
		}
		r.mu.Unlock()
		var h abi.CmdHdr
		if h.Parse(b[:n]) != nil {
			return
		}
		if h.Command != abi.CmdPostSend || int(h.InWords)*4 != len(b) {
			r.refuse()
			r.read += max(int64(h.InWords)*4, abi.CmdHdrSize)
			continue
		}
		if n < len(b) {
			return
		}
		r.read += int64(len(b))
		c := &call{process: r.program.process, blind: true}
		if open := r.commands(); open != nil {
			r.assist(func() bool { return true }, func() { _, _ = c.try(r.file, open, b[:]) }, func() {})
		}
		r.mu.Lock()
		if r.memfd >= 0 && r.read%logPiece == 0 {
			_ = unix.Fallocate(r.memfd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, logAt+r.read-logPiece, logPiece)
		}
		r.mu.Unlock()
	}
}

// logPiece is how much of the log is given back at a time, in bytes.
const logPiece = 1 << 20

// refuse says that a command was not carried out.
func (r *rings) refuse() {
	if !r.refused {
		r.refused = true
		fmt.Fprintf(os.Stderr, "rdmashim: process %d wrote a command to a duplicate of %s, which only ioctl reaches: use the number that open gave\n",
			r.program.process.pid, r.path)
	}
}
