package rdmanet_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// faults are those of a bad network, in both directions.
const faults = "loss=5%&reorder=10%&dup=1%&corrupt=0.1%"

// TestUnderFaults repeats tests of streams, and of programs on them, on a
// network that loses, reorders, doubles and damages packets.
func TestUnderFaults(t *testing.T) {
	if realDevice != "" {
		t.Skip("the faults are those of a network in memory; run it without RDMANET_TEST_DEVICE")
	}
	defer func() { network = "" }()
	seeds := 3
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		network = fmt.Sprintf("%s&seed=%d", faults, seed+1)
		for _, c := range []struct {
			name string
			test func(*testing.T)
		}{
			{"both ways", TestRival04BothWriteThroughSmallRings},
			{"half-close", TestHalfClose},
			{"close read", TestCloseRead},
			{"deadlines", TestRival11Deadlines},
			{"copies", TestCopies},
			{"close", TestCloseCarriesWhatWasWritten},
			{"both close", TestBothCloseAtOnce},
			{"linger 0", TestLingerZero},
			{"unread data", TestUnreadDataResets},
			{"close during calls", TestRival08CloseDuringCalls},
			{"leave nothing", TestRival14ConnectionsLeaveNothing},
			{"HTTP", TestHTTP},
			{"hijack", TestHijack},
			{"TLS", TestTLS},
			{"close with a full ring", TestRival09CloseIsBounded},
			{"stalled reader", TestRival15StalledReader},
		} {
			t.Run(fmt.Sprintf("%s/seed %d", c.name, seed+1), c.test)
		}
	}
}

// TestBothCloseAtOnce: data written before Close arrives, from a byte to a
// whole ring, when both ends close at the same moment.
func TestBothCloseAtOnce(t *testing.T) {
	const ring = 16 << 10
	for _, n := range []int{1, 257, 4096, ring} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				x, y := connect(t, rdmanet.Config{Ring: ring})
				data := make([]byte, n)
				_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(data)
				var all sync.WaitGroup
				for _, c := range []*rdmanet.Conn{x, y} {
					must.Get(c.Write(data))(t)
					all.Go(func() {
						got := make([]byte, n)
						if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, data) {
							t.Errorf("read %d bytes: %v", n, err)
						}
						if err := c.CloseContext(limited(t)); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
			})
		})
	}
}
