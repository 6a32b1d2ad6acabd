package suite

import (
	"context"
	"net/netip"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/tools/lab/rawudp"
)

// rawUDP is the goodput, in bytes a second, of messages over UDP with GSO, GRO,
// CRC-32 and the copies of both sides, for about d. An error Is syscall.ENOTSUP
// where there is no GSO.
func rawUDP(ctx context.Context, size int, d time.Duration, other partner) (float64, error) {
	to, stop, err := other(ctx)
	if err != nil {
		return 0, err
	}
	defer stop()
	s, err := rawudp.NewSender(size, to)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	defer context.AfterFunc(ctx, func() { s.Close() })()
	return paced(ctx, size, d, s.Move)
}

// udpSink takes rawUDP's datagrams.
func udpSink(ctx context.Context, size int, announce func(netip.AddrPort) error) error {
	r, err := rawudp.NewReceiver(size)
	if err != nil {
		return err
	}
	defer r.Close()
	defer context.AfterFunc(ctx, func() { r.Close() })()
	if err := announce(r.Addr()); err != nil {
		return err
	}
	return r.Serve()
}

func read(fd uintptr, b []byte) (int, error) { return syscall.Read(int(fd), b) }
