package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

const testDelay = 500 * Microsecond

func lazyPair(t testing.TB) *network {
	return newPair(t, cfg{edit: func(_ int, c *Config) { c.Tuning.AckDelay = testDelay }})
}

func TestAckWaits(t *testing.T) {
	t.Run("its time", func(t *testing.T) {
		n := lazyPair(t)
		require.Empty(t, n.answer(n.req(wire.RCWriteOnly, 0, 8)))
		require.True(t, n.b.qp.HoldsAck())
		by, ok := n.b.qp.NextTimeout()
		require.True(t, ok)
		require.Equal(t, n.now+Time(testDelay), by)
		n.now += Time(testDelay) / 2
		require.Empty(t, n.answer(n.req(wire.RCWriteOnly, 0, 8)), "another message does not put it off")
		again, _ := n.b.qp.NextTimeout()
		require.Equal(t, by, again)
		n.now = by
		n.b.qp.HandleTimeout(n.now)
		out := n.answer()
		require.Equal(t, []wire.Opcode{wire.RCAck}, opcodes(out))
		require.EqualValues(t, 2, out[0].AETH.MSN)
		require.False(t, n.b.qp.HoldsAck())
		_, ok = n.b.qp.NextTimeout()
		require.False(t, ok)
	})
	t.Run("company", func(t *testing.T) {
		n := lazyPair(t)
		require.Empty(t, n.answer(n.req(wire.RCWriteOnly, 0, 8)))
		require.NoError(t, n.b.qp.Post(n.now, &SendWR{Opcode: abi.WRRDMAWrite, SGE: n.b.sge(0, 8), RemoteAddr: n.a.va(0), RKey: n.a.key()}))
		require.Equal(t, []wire.Opcode{wire.RCWriteOnly, wire.RCAck}, opcodes(n.answer()), "the short one last")
	})
	t.Run("ReleaseAck", func(t *testing.T) {
		n := lazyPair(t)
		n.b.qp.ReleaseAck()
		require.Empty(t, n.answer(), "nothing is owed")
		require.Empty(t, n.answer(n.req(wire.RCWriteOnly, 0, 8)))
		n.b.qp.ReleaseAck()
		require.Equal(t, []wire.Opcode{wire.RCAck}, opcodes(n.answer()))
	})
}

// The requester cannot go on without these.
func TestAckDoesNotWait(t *testing.T) {
	for name, send := range map[string]func(n *network) []*wire.Packet{
		"in the middle of a message": func(n *network) []*wire.Packet {
			return []*wire.Packet{n.req(wire.RCWriteFirst, 0, 1024, dmalen(4096))}
		},
		"a duplicate": func(n *network) []*wire.Packet {
			return []*wire.Packet{n.req(wire.RCWriteOnly, 0, 8), n.req(wire.RCWriteOnly, 0, 8)}
		},
		"a lot": func(n *network) []*wire.Packet {
			var ps []*wire.Packet
			for i := range pressure / (1024 + packetCost) {
				ps = append(ps, n.req(wire.RCWriteOnly, i, 1024))
			}
			require.Empty(t, n.answer(ps...))
			return []*wire.Packet{n.req(wire.RCWriteOnly, 0, 1024)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := lazyPair(t)
			require.Equal(t, []wire.Opcode{wire.RCAck}, opcodes(n.answer(send(n)...)))
			require.False(t, n.b.qp.HoldsAck())
		})
	}
	t.Run("a NAK", func(t *testing.T) {
		n := lazyPair(t)
		out := n.answer(n.req(wire.RCWriteOnly, 0, 8), n.req(wire.RCWriteOnly, 5, 8))
		require.Equal(t, []wire.Opcode{wire.RCAck}, opcodes(out))
		require.Equal(t, nakSeq, out[0].AETH.Syndrome)
		_, ok := n.b.qp.NextTimeout()
		require.False(t, ok, "the NAK acknowledged what was held")
	})
	t.Run("a READ", func(t *testing.T) {
		n := lazyPair(t)
		out := n.answer(n.req(wire.RCWriteOnly, 0, 8), n.req(wire.RCReadRequest, 1, 0, dmalen(8)))
		require.Equal(t, []wire.Opcode{wire.RCReadResponseOnly}, opcodes(out))
		require.False(t, n.b.qp.HoldsAck())
	})
}
