package suite

import (
	"context"
	"errors"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// References move something, and end when they are told to.
func TestReferences(t *testing.T) {
	for name, run := range map[string]func(context.Context) (float64, error){
		"raw UDP": func(c context.Context) (float64, error) {
			return rawUDP(c, 65536, time.Millisecond, startIn(func(ctx context.Context, announce func(netip.AddrPort) error) error {
				return udpSink(ctx, 65536, announce)
			}))
		},
		"spinning": func(c context.Context) (float64, error) {
			return udpPingPong(c, time.Millisecond, true, pongIn(true))
		},
		"waiting": func(c context.Context) (float64, error) {
			return udpPingPong(c, time.Millisecond, false, pongIn(false))
		},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := run(t.Context())
			if errors.Is(err, syscall.ENOTSUP) {
				t.Skip("this system lacks the reference's system calls; run it on Linux: ", err)
			}
			require.NoError(t, err)
			require.Positive(t, v)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err = run(ctx)
			require.Error(t, err)
		})
	}
}

// pongIn answers in this process.
func pongIn(spin bool) func(netip.AddrPort) partner {
	return func(from netip.AddrPort) partner {
		return startIn(func(ctx context.Context, announce func(netip.AddrPort) error) error {
			return udpPong(ctx, spin, from, announce)
		})
	}
}

// startIn starts the other side of a reference in this process.
func startIn(run func(context.Context, func(netip.AddrPort) error) error) partner {
	return func(ctx context.Context) (netip.AddrPort, func(), error) {
		ctx, cancel := context.WithCancel(ctx)
		at, ended := make(chan netip.AddrPort, 1), make(chan error, 1)
		go func() { ended <- run(ctx, func(a netip.AddrPort) error { at <- a; return nil }) }()
		select {
		case a := <-at:
			return a, func() { cancel(); <-ended }, nil
		case err := <-ended:
			cancel() // with an error, also if it ended in good order, having been told to
			return netip.AddrPort{}, nil, errors.Join(err, ctx.Err())
		}
	}
}
