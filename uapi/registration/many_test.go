package registration_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi/registration"
)

// TestThousand: a listener has 1,000 connections at once, each
// with bytes of its own both ways, and then its registration closes with all of
// them open. It runs on virtual time, in which a busy machine makes no peer
// late.
func TestThousand(t *testing.T) {
	synctest.Test(t, thousand)
}

func thousand(t *testing.T) {
	count, dialers := 1000, 8
	if testing.Short() {
		count = 200
	}
	config := plain(registration.Sim{Rings: registration.Rings{Ring: 16 << 10}})
	r := open(t, config)
	l := listen(t, r)
	results := make(chan error, 2*count)
	var all sync.WaitGroup
	for range count {
		all.Go(func() {
			c, err := l.Accept(soon(t))
			var p []byte
			if err == nil {
				p, err = c.ReceiveDatagram(soon(t))
			}
			if err == nil {
				err = c.SendDatagram(append(p, p...))
			}
			results <- err
		})
	}
	next := make(chan int, count)
	for i := range count {
		next <- i
	}
	close(next)
	for range dialers {
		all.Go(func() {
			for i := range next {
				results <- echoed(t, r, l.Addr().String(), fmt.Appendf(nil, "connection %d.", i))
			}
		})
	}
	all.Wait()
	for range 2 * count {
		require.NoError(t, <-results)
	}
	stats := r.Stats()
	require.Equal(t, 2*count, stats.Connections)
	require.NoError(t, r.Close())
	require.Zero(t, r.Stats().Connections)
}

// echoed dials, sends p and wants it back twice. The connection stays open.
func echoed(t *testing.T, r *registration.Registration, addr string, p []byte) error {
	c, err := r.Dial(soon(t), addr)
	if err == nil {
		err = c.SendDatagram(p)
	}
	var got []byte
	if err == nil {
		got, err = c.ReceiveDatagram(soon(t))
	}
	if err == nil && !bytes.Equal(got, append(p, p...)) {
		err = fmt.Errorf("%q came back of %q", got, p)
	}
	return err
}
