package engine

import (
	"net/netip"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Packets lie one behind the other, headers, payload and the room for pad and
// ICRC; long payloads begin at a cache line.
func TestBatchLaysPackets(t *testing.T) {
	for _, n := range []int{1, 1021, 1024, aligned - 4, aligned, 4096, wire.MaxPrivateMTU} {
		b := NewBatch(64)
		at := uintptr(unsafe.Pointer(&b.arena[0]))
		for i := 0; !b.Full(); i++ {
			payload := b.payload(wire.RCWriteMiddle, n)
			if p := (wire.Packet{BTH: wire.BTH{Opcode: wire.RCWriteMiddle}}); i%3 == 0 {
				b.add(netip.AddrPort{}, &p, payload)
			} else {
				b.addNext(payload)
			}
			d := b.last()
			require.Len(t, d.Frame, wire.BTHLen+n+int(wire.PadLen(n))+wire.ICRCLen)
			require.Equal(t, unsafe.SliceData(d.Frame), unsafe.SliceData(d.Head))
			require.Equal(t, unsafe.SliceData(d.Frame[wire.BTHLen:]), unsafe.SliceData(payload))
			first := uintptr(unsafe.Pointer(&d.Frame[0]))
			if n < aligned {
				require.Equal(t, at, first, "behind the one before")
			} else {
				require.Zero(t, (first+wire.BTHLen)%64, "at a cache line")
				require.Less(t, first-at, uintptr(64))
			}
			at = first + uintptr(len(d.Frame))
		}
		require.NotEmpty(t, b.Packets)
	}
}
