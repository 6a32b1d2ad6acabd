//go:build linux && (amd64 || arm64)

package supervise

import (
	"encoding/binary"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/rdmanl"
)

// socket is a program's socket of NETLINK_RDMA. In truth it is one of
// NETLINK_USERSOCK: what is sent is held, and answers come from another such
// socket, so that all else is Linux's own.
type socket struct {
	own int   // a duplicate here
	at  int32 // its first number in the program
}

// closeSocket closes a socket here. Children of the process may have it; what
// they send then reaches nobody.
func (k *Kernel) closeSocket(id fileID, s *socket) {
	k.mu.Lock()
	delete(k.sockets, id)
	k.mu.Unlock()
	unix.Close(s.own)
}

func (c *call) socket() {
	kind := int(c.Args[1]) | unix.SOCK_CLOEXEC
	own, err := unix.Socket(unix.AF_NETLINK, kind, unix.NETLINK_USERSOCK)
	if err != nil {
		c.fail(err)
		return
	}
	s := &socket{own: own}
	if err := c.giveSocket(s); err != nil {
		unix.Close(own)
		c.fail(err)
		return
	}
	c.value(int64(s.at))
}

// giveSocket gives the program its socket, and closes those that it has closed.
func (c *call) giveSocket(s *socket) error {
	p := c.process
	var st unix.Stat_t
	if err := unix.Fstat(s.own, &st); err != nil {
		return err
	}
	at, err := c.free()
	if err != nil {
		return err
	}
	c.flags = int(c.Args[1]) & unix.SOCK_CLOEXEC
	if _, err := c.add(s.own, at); err != nil {
		return err
	}
	s.at = int32(at)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return syscall.ESRCH
	}
	for id, old := range p.sockets {
		if now, ok := c.identify(old.at); !ok || now != id {
			p.kernel.closeSocket(id, old)
			delete(p.sockets, id)
		}
	}
	if p.sockets == nil {
		p.sockets = map[fileID]*socket{}
	}
	id := fileID{st.Dev, st.Ino}
	p.sockets[id] = s
	p.kernel.mu.Lock()
	p.kernel.sockets[id] = s
	p.kernel.mu.Unlock()
	return nil
}

// netlink is the socket, of the process or of one that it comes from, behind
// the call's descriptor, or nil.
func (c *call) netlink() *socket {
	id, ok := c.identify(c.fd())
	if !ok {
		return nil
	}
	k := c.process.kernel
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sockets[id]
}

// writeOther is a write to a descriptor that is no file of emu.
func (c *call) writeOther(sent func() ([]byte, error)) {
	s := c.netlink()
	if s == nil {
		c.pass()
		return
	}
	go c.request(s, sent)
}

func (c *call) send(addr, size uint64) {
	c.writeOther(func() ([]byte, error) { return c.bytes(addr, min(size, rdmanl.MaxRequest+1)) })
}

// sendmsg sends what struct msghdr names: its pieces are at 16, their number
// at 24.
func (c *call) sendmsg() {
	c.writeOther(func() ([]byte, error) {
		var header [32]byte
		if err := c.process.read(header[:], c.Args[1]); err != nil {
			return nil, err
		}
		return c.gather(binary.NativeEndian.Uint64(header[16:]), binary.NativeEndian.Uint64(header[24:]), rdmanl.MaxRequest+1)
	})
}

// request answers messages.
func (k *Kernel) request(own int, b []byte) error {
	if d := k.config.Devices; d != nil {
		d.RLock()
		defer d.RUnlock()
	}
	return k.netlink.Request(own, b)
}

// request answers what a program sends.
func (c *call) request(s *socket, sent func() ([]byte, error)) {
	c.settle(nil)
	b, err := sent()
	if err == nil && len(b) > rdmanl.MaxRequest {
		err = syscall.EMSGSIZE
	}
	if err == nil {
		err = c.process.kernel.request(s.own, b)
	}
	c.finish(len(b), err)
}
