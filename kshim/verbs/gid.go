package verbs

import (
	"fmt"
	"net/netip"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// parseGIDs takes the n entries that the kernel says it wrote, and keeps those
// of one port.
func parseGIDs(table []byte, n uint64, port uint8) ([]GID, error) {
	if n > uint64(len(table)/abi.GIDEntrySize) {
		return nil, fmt.Errorf("kernel answers %d GID table entries where there is room for %d: %w", n, len(table)/abi.GIDEntrySize, syscall.EIO)
	}
	list := make([]GID, 0, n)
	for i := range int(n) {
		var e abi.GIDEntry
		if err := e.Parse(table[i*abi.GIDEntrySize:]); err != nil {
			return nil, err
		}
		if e.PortNum == uint32(port) {
			list = append(list, GID{int(e.GIDIndex), netip.AddrFrom16(e.GID), e.GIDType, e.NetdevIfindex})
		}
	}
	return list, nil
}
