package cm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Each side learns with which queue pair and how fast its peer answered; not
// when its own message went out twice, nor when the peer asked for patience.
func TestRoundTrip(t *testing.T) {
	const unknown = cm.Duration(0)
	for name, c := range map[string]struct {
		lose            wire.CMAttribute // its first copy
		thinks          cm.Duration      // the passive program, before it accepts
		active, passive cm.Duration
	}{
		"nothing lost":         {active: 2 * hop, passive: 2 * hop},
		"REQ lost":             {lose: wire.AttrREQ, active: unknown, passive: 2 * hop},
		"REP lost":             {lose: wire.AttrREP, active: unknown, passive: unknown},
		"RTU lost":             {lose: wire.AttrRTU, active: 2 * hop, passive: unknown},
		"a program that waits": {thinks: 5 * hop, active: 7 * hop, passive: 2 * hop},
		"an MRA, and repeats":  {thinks: cm.Second, active: unknown, passive: 2 * hop},
	} {
		t.Run(name, func(t *testing.T) {
			w, a, b, _ := pair(t, cm.Config{})
			w.fate = func(f *flight) []cm.Duration {
				if f.attribute() == c.lose {
					c.lose = 0
					return nil
				}
				return []cm.Duration{hop}
			}
			got := map[*host]cm.Event{}
			answer := w.told
			w.told = func(h *host, e cm.Event) {
				switch e.Kind {
				case cm.ConnectRequest:
					w.later(c.thinks, func() { answer(h, e) })
					return
				case cm.ConnectResponse, cm.Connected:
					got[h] = e
				}
				answer(h, e)
			}
			a.connect(t, b)
			w.advance(3 * cm.Second)
			require.Equal(t, []wire.QPN{a.qpn, b.qpn}, []wire.QPN{got[a].QPN, got[b].QPN})
			require.Equal(t, []cm.Duration{c.active, c.passive}, []cm.Duration{got[a].RoundTrip, got[b].RoundTrip})
		})
	}
}
