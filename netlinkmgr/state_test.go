package netlinkmgr

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNames: numbers at the ends of the tables and beyond.
func TestNames(t *testing.T) {
	for want, got := range map[string]fmt.Stringer{
		"ca": NodeType(1), "unspecified": NodeType(7), "NOP": PortState(0), "ACTIVE_DEFER": PortState(5), "LINK_UP": PhysState(5), "OPA_TEST": PhysState(11),
		"SMI": QPType(0), "XRC_TGT": QPType(10), "DRIVER": QPType(255), "RESET": QPState(0), "ERR": QPState(6), "ARMED": PathMigState(2),
		"UNBOUND_WORKQUEUE": PollContext(3), "IDLE": CMState(0), "DESTROYING": CMState(10), "TCP": PortSpace(0x106), "UDP": PortSpace(0x111), "IPoIB": PortSpace(2), "---": PortSpace(3),
		"exclusive": NetNSExclusive, "shared": NetNSShared,
	} {
		require.Equal(t, want, got.String())
	}
	for _, got := range []fmt.Stringer{PortState(6), PhysState(12), QPType(11), QPType(254), QPState(7), PathMigState(3), PollContext(4), CMState(11)} {
		require.Equal(t, "UNKNOWN", got.String())
	}
	require.Equal(t, "unknown", NodeType(8).String())
	require.Equal(t, "unknown", NetNSMode(2).String())
	require.Equal(t, []string{"RESERVED", "HIERARCHY_INFO", "SET_NODE_DESC", "UNKNOWN"}, PortCaps(1|1<<31|1<<32|1<<63))
	require.Equal(t, []string{"UNKNOWN", "ON_DEMAND_PAGING", "PCI_WRITE_END_PADDING"}, DeviceCaps(1<<16|1<<31|1<<36))
	require.Empty(t, PortCaps(0))
	require.Len(t, portCaps, 38)
	require.Len(t, deviceCaps, 37)
	require.Equal(t, "0102:0304:0506:0708", GUID(0x0102030405060708).String())
}
