package shm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/arena"
)

// Notes follow the hellos on the socket, little-endian:
//
//	mapArena    u64 number, u64 bytes, and the memfd: the dialer's, to be mapped
//	mapped      u64 number: the acceptor has mapped it
//	unmapArena  u64 number: it has gone
const (
	mapArena   byte = 'M'
	mapped     byte = 'A'
	unmapArena byte = 'U'

	noteLen = 17 // the longest
)

func unmap(mem []byte) { _ = unix.Munmap(mem) }

// sendNote sends a note of an arena, and waits while the peer takes none.
func sendNote(c *net.UnixConn, note byte, id uint64) {
	_, _ = c.Write(binary.LittleEndian.AppendUint64([]byte{note}, id))
}

// showArena hands an arena over. It may be gone by now.
func showArena(c *net.UnixConn, id uint64) {
	fd, n, err := arena.Open(id)
	if err != nil {
		return
	}
	b := binary.LittleEndian.AppendUint64([]byte{mapArena}, id)
	b = binary.LittleEndian.AppendUint64(b, uint64(n))
	_, _, _ = c.WriteMsgUnix(b, unix.UnixRights(fd), nil)
	unix.Close(fd)
}

// mapped follows the note that a device has mapped an arena.
func (l *Link) mapped(d *device, id uint64) {
	l.tx.Lock()
	defer l.tx.Unlock()
	if d.out != nil {
		if _, asked := d.out.arenas[id]; asked {
			d.out.arenas[id] = true
		}
	}
}

// arenaGone lets all devices forget an arena: nothing of it is registered, and
// so nothing is lent. It counts as one of a device's until the note has left:
// the notes to a peer that takes none are bounded.
func (l *Link) arenaGone(id uint64) {
	l.tx.Lock()
	defer l.tx.Unlock()
	for _, d := range l.tx.rings {
		if _, asked := d.out.arenas[id]; asked {
			d.out.hide(id)
		}
	}
}

// readNotes carries out a dialer's notes until it hangs up. A dialer that
// breaks the rules loses its ring.
func (l *Link) readNotes(c *net.UnixConn, d *device, in *inbound) {
	for {
		b, fds, err := receiveMessage(c, noteLen)
		if err != nil {
			return
		}
		if err = l.carryOut(c, d, in, b, fds); errors.Is(err, syscall.EPROTO) {
			l.rx.Lock()
			if d.in == in {
				in.bad = err
				l.dropBroken()
			}
			l.rx.Unlock()
		}
		closeAll(fds)
	}
}

// carryOut does what a note asks for. EPROTO if it breaks the rules.
func (l *Link) carryOut(c *net.UnixConn, d *device, in *inbound, b []byte, fds []int) error {
	switch {
	case len(b) == 17 && b[0] == mapArena && len(fds) == 1:
		id := binary.LittleEndian.Uint64(b[1:])
		mem, err := mapArenaOf(fds[0], binary.LittleEndian.Uint64(b[9:]))
		if err != nil {
			return err
		}
		if err = l.adoptArena(d, in, id, mem); err == nil {
			sendNote(c, mapped, id)
		}
		return err
	case len(b) == 9 && b[0] == unmapArena && len(fds) == 0:
		l.rx.Lock()
		defer l.rx.Unlock()
		id := binary.LittleEndian.Uint64(b[1:])
		if mem := in.arenas[id]; mem != nil && d.in == in {
			delete(in.arenas, id)
			l.rx.afterUse(func() { unmap(mem) })
		}
		return nil
	}
	return fmt.Errorf("shm: a note of %d bytes with %d descriptors is none: %w", len(b), len(fds), syscall.EPROTO)
}

// adoptArena keeps an arena that was mapped. It unmaps it on an error, and when
// the ring has gone.
func (l *Link) adoptArena(d *device, in *inbound, id uint64, mem []byte) error {
	l.rx.Lock()
	defer l.rx.Unlock()
	var err error
	if _, twice := in.arenas[id]; twice || len(in.arenas) >= maxArenas {
		err = fmt.Errorf("shm: arena %d is the device's %dth, or comes twice: %w", id, len(in.arenas)+1, syscall.EPROTO)
	}
	if err != nil || d.in != in {
		unmap(mem)
		return err
	}
	in.arenas[id] = mem
	return nil
}

// mapArenaOf maps an arena of another process, for reading. EPROTO if it is not
// sealed, or not as long as it was said to be.
func mapArenaOf(fd int, n uint64) ([]byte, error) {
	if n == 0 || uint64(int(n)) != n {
		return nil, fmt.Errorf("shm: the peer's arena has %d bytes: %w", n, syscall.EPROTO)
	}
	if err := checkSealed(fd, arena.Seals, int64(n)); err != nil {
		return nil, err
	}
	return unix.Mmap(fd, 0, int(n), unix.PROT_READ, unix.MAP_SHARED)
}
