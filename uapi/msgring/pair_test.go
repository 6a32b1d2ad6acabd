package msgring_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
)

// realDevice is a device of the kernel, which tests/guest names, in place of a
// soft one.
var realDevice = os.Getenv("MSGRING_TEST_DEVICE")

// givenBack waits until closed connections have given everything back, whether
// or not all has arrived.
func givenBack(t *testing.T, conns ...*msgring.Conn) {
	t.Helper()
	for _, c := range conns {
		if err := c.CloseContext(context.Background()); !errors.Is(err, msgring.ErrUndelivered) {
			require.NoError(t, err)
		}
	}
}

// connect connects a dialer on a to an acceptor on b. Both are closed at the
// end of the test.
func connect(t *testing.T, a, b *uapi.Device, config msgring.Config) (dialer, acceptor *msgring.Conn) {
	t.Helper()
	devices := []*uapi.Device{a, b}
	before := make([]uint64, len(devices)) // a device of the kernel was used by others
	for i, device := range devices {
		before[i] = must.Get(device.Counters())(t)["send_rnr_err"]
	}
	info := must.Get(b.QueryDevice())(t)
	l, err := b.Listen(netip.AddrPortFrom(info.Address.Addr(), 0).String(), uapi.ListenConfig{})
	require.NoError(t, err)
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	accepted := make(chan error, 1)
	go func() {
		request, err := l.Accept(ctx)
		if err == nil {
			acceptor, err = msgring.Accept(ctx, request, config)
		}
		accepted <- err
	}()
	dialer = must.Get(msgring.Dial(ctx, a, l.Addr().String(), config))(t)
	require.NoError(t, <-accepted)
	t.Cleanup(func() {
		_ = dialer.Close()
		_ = acceptor.Close()
		givenBack(t, dialer, acceptor)
		for i, device := range devices {
			if counters, err := device.Counters(); err == nil { // it is open
				require.Equal(t, before[i], counters["send_rnr_err"], "messages that met a missing receive")
			}
		}
	})
	return dialer, acceptor
}
