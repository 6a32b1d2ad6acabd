//go:build guest && linux

package guesttest

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/tests/must"
)

// Commands and sizes of rdma/rdma_user_cm.h.
const (
	cmCreateID     = 0
	cmResolveRoute = 4
	cmConnect      = 6
	cmListen       = 7
	cmGetEvent     = 12
	cmBind         = 20
	cmResolveAddr  = 21

	psTCP   = 0x106
	qpRC    = 2
	evAddr  = 0
	evRoute = 2
	evReq   = 4
)

// cm is a file of the connection manager. It is no os.File, which would wait
// for it to become writable instead of blocking in GET_EVENT.
type cm struct {
	t  *testing.T
	fd int
}

func openCM(t *testing.T) *cm {
	fd := must.Get(unix.Open("/dev/infiniband/rdma_cm", unix.O_RDWR|unix.O_CLOEXEC, 0))(t)
	t.Cleanup(func() { _ = unix.Close(fd) })
	return &cm{t, fd}
}

var native = binary.NativeEndian

// call sends a command of the body's bytes.
func (c *cm) call(cmd uint32, body []byte, out int) {
	c.t.Helper()
	b := native.AppendUint32(nil, cmd)
	b = native.AppendUint16(b, uint16(len(body)))
	b = native.AppendUint16(b, uint16(out))
	_, err := unix.Write(c.fd, append(b, body...))
	require.NoError(c.t, err, "command %d", cmd)
}

func (c *cm) create() uint32 {
	var id uint32
	b := native.AppendUint64(nil, 1)
	b = native.AppendUint64(b, uint64(uintptr(unsafe.Pointer(&id))))
	b = native.AppendUint16(b, psTCP)
	c.call(cmCreateID, append(b, qpRC, 0, 0, 0, 0, 0), 4)
	return id
}

// storage is a sockaddr_storage.
func storage(a netip.AddrPort) []byte {
	b := make([]byte, 128)
	native.PutUint16(b, unix.AF_INET)
	binary.BigEndian.PutUint16(b[2:], a.Port())
	copy(b[4:], a.Addr().AsSlice())
	return b
}

const sockaddrIn = 16

// listen makes a listening identifier on an address.
func (c *cm) listen(a netip.AddrPort) {
	id := c.create()
	b := native.AppendUint32(nil, id)
	b = native.AppendUint16(b, sockaddrIn)
	b = append(b, 0, 0)
	c.call(cmBind, append(b, storage(a)...), 0)
	c.call(cmListen, native.AppendUint32(native.AppendUint32(nil, id), 8), 0)
}

// connect makes an identifier that asks a listener for a connection of a queue
// pair.
func (c *cm) connect(from netip.Addr, to netip.AddrPort, qpn uint32) {
	id := c.create()
	b := native.AppendUint32(native.AppendUint32(nil, id), 5000)
	b = native.AppendUint16(native.AppendUint16(b, sockaddrIn), sockaddrIn)
	b = append(b, 0, 0, 0, 0)
	b = append(b, storage(netip.AddrPortFrom(from, 0))...)
	c.call(cmResolveAddr, append(b, storage(to)...), 0)
	require.EqualValues(c.t, evAddr, c.event())
	c.call(cmResolveRoute, native.AppendUint32(native.AppendUint32(nil, id), 5000), 0)
	require.EqualValues(c.t, evRoute, c.event())
	param := make([]byte, 4+4+256+8)
	native.PutUint32(param, qpn)
	param[4+4+256+5] = 7 // retries
	param[4+4+256+7] = 1 // valid
	b = native.AppendUint32(native.AppendUint32(param, id), 0)
	c.call(cmConnect, append(b, make([]byte, 8)...), 0)
}

// event waits for the next event and gives its number.
func (c *cm) event() uint32 {
	c.t.Helper()
	resp := make([]byte, 336)
	c.call(cmGetEvent, native.AppendUint64(nil, uint64(uintptr(unsafe.Pointer(&resp[0])))), len(resp))
	require.Zero(c.t, native.Uint32(resp[16:]), "status of event %d", native.Uint32(resp[12:]))
	return native.Uint32(resp[12:])
}
