package shm

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/peercred"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// socketName is the abstract name at which a device is met. A name belongs to a
// network namespace, as the address does, and that of a link-local address with
// its zone to a network device.
func socketName(device netip.AddrPort) string { return "@rdmashim/1/" + device.String() }

// bare is the address by which a device is known: without a zone.
func bare(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(wire.Bare(a.Addr()), a.Port()) }

// trusted returns the process at the other end. It refuses one of another user
// than this process's and Users with EPERM: a name can be taken by any process,
// a user id cannot.
func (o *Options) trusted(c *net.UnixConn) (pid int, err error) {
	pid, uid, err := peercred.Of(c)
	if err == nil && uid != os.Geteuid() && !slices.Contains(o.Users, uid) {
		err = fmt.Errorf("shm: process %d of user %d has the device's name: %w", pid, uid, syscall.EPERM)
	}
	return pid, err
}

// sendHello sends a hello with descriptors.
func sendHello(c *net.UnixConn, h *hello, fds ...int) error {
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	_, _, err := c.WriteMsgUnix(h.append(nil), rights, nil)
	return err
}

// receiveHello receives a hello that must carry so many descriptors, which the
// caller closes. After an error there are none.
func receiveHello(c *net.UnixConn, descriptors int) (h hello, fds []int, err error) {
	b, fds, err := receiveMessage(c, helloLen)
	if err != nil {
		return h, nil, err
	}
	if err = h.parse(b); err == nil && len(fds) != descriptors {
		err = fmt.Errorf("shm: a hello with %d descriptors, not %d: %w", len(fds), descriptors, syscall.EPROTO)
	}
	if err != nil {
		closeAll(fds)
		return h, nil, err
	}
	return h, fds, nil
}

// receiveMessage receives a message with the descriptors that came with it, at
// most four, which the caller closes. One that is longer than most is cut.
func receiveMessage(c *net.UnixConn, most int) (b []byte, fds []int, err error) {
	b, oob := make([]byte, most+1), make([]byte, unix.CmsgSpace(4*4))
	n, k, _, _, err := c.ReadMsgUnix(b, oob)
	if err != nil || n == 0 {
		return nil, nil, cmp.Or(err, io.EOF)
	}
	messages, _ := unix.ParseSocketControlMessage(oob[:k])
	for i := range messages {
		got, _ := unix.ParseUnixRights(&messages[i])
		fds = append(fds, got...)
	}
	return b[:n], fds, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}
