package rdmanettest

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// patience is how long the connections may take that the test has closed.
const patience = 30 * time.Second

// Listen opens two devices with these options, as uapitest.Listen does, listens
// on one and gives a dialer on the other, to l.Addr(). At the end of the test
// it closes the listener and waits for the connections that were closed; one
// that was left open fails the test, as any handle does.
func Listen(t uapitest.T, options string, config rdmanet.Config) (dialer *rdmanet.Dialer, l *rdmanet.Listener) {
	t.Helper()
	client, server := uapitest.Pair(t, options)
	info, err := server.QueryDevice()
	if err == nil {
		l, err = rdmanet.ListenOn(server, netip.AddrPortFrom(info.Address.Addr(), 0).String(), config)
	}
	if err != nil {
		t.Fatalf("rdmanettest: %v", err)
	}
	t.Cleanup(func() {
		t.Helper()
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("rdmanettest: %v", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for _, device := range []*uapi.Device{client, server} {
			if err := rdmanet.FlushDevice(ctx, device); err != nil && !errors.Is(err, rdmanet.ErrUndelivered) {
				t.Errorf("rdmanettest: closed connections do not end: %v", err)
			}
		}
	})
	return &rdmanet.Dialer{Device: client, Config: config}, l
}
