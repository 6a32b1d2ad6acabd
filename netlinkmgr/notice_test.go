package netlinkmgr

import (
	"encoding/hex"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

func TestUevent(t *testing.T) {
	for text, want := range map[string]Event{
		"add@/devices/virtual/infiniband/rxe0|ACTION=add|DEVPATH=/devices/virtual/infiniband/rxe0|SUBSYSTEM=infiniband|NAME=rxe0|SEQNUM=900|":                  {Kind: EventRegister, Source: SourceUevent, Device: "rxe0"},
		"remove@/devices/virtual/infiniband/rxe0|ACTION=remove|DEVPATH=/devices/virtual/infiniband/rxe0|SUBSYSTEM=infiniband|":                                 {Kind: EventUnregister, Source: SourceUevent, Device: "rxe0"},
		"move@/devices/virtual/infiniband/a|ACTION=move|DEVPATH=/devices/virtual/infiniband/a|SUBSYSTEM=infiniband|DEVPATH_OLD=/devices/virtual/infiniband/b|": {Kind: EventRename, Source: SourceUevent, Device: "a", Old: "b"},
		"change@/devices/virtual/infiniband/a|ACTION=change|DEVPATH=/devices/virtual/infiniband/a|SUBSYSTEM=infiniband|":                                       {},
		"add@/devices/virtual/infiniband_verbs/uverbs0|ACTION=add|DEVPATH=/devices/virtual/infiniband_verbs/uverbs0|SUBSYSTEM=infiniband_verbs|":               {},
		"add@/module/rdma_rxe|ACTION=add|DEVPATH=/module/rdma_rxe|SUBSYSTEM=module|":                                                                           {},
		"add@x|DEVPATH=/devices/virtual/infiniband/rxe0|SUBSYSTEM=infiniband|":                                                                                 {},
		"libudev|ACTION=add|DEVPATH=/a/infiniband/x|SUBSYSTEM=infiniband|":                                                                                     {},
		"add@x|ACTION=add|DEVPATH=/a/infiniband/|SUBSYSTEM=infiniband|":                                                                                        {},
		"": {},
	} {
		e, ok := parseUevent([]byte(strings.ReplaceAll(text, "|", "\x00")))
		require.Equal(t, want.Kind != "", ok, text)
		require.Equal(t, want, e)
	}
}

// notification is NETDEV_ATTACH as nldev.c:fill_mon_netdev_association puts it.
const notification = "0800010003000000" + "0900020072786530" + "00000000" + "0800030001000000" + "0800320005000000" + "0900330065746830" + "00000000" + "0500660002000000"

func TestNotification(t *testing.T) {
	b := must.Get(hex.DecodeString(notification))(t)
	e := must.Get(parseNotification(b))(t)
	index := uint32(3)
	require.Equal(t, Event{Kind: EventNetDevAttach, Source: SourceRDMA, Device: "rxe0", Index: &index, Port: 1, NetDev: "eth0", NetDevIndex: 5}, e)
	for n := range b {
		if n < len(b)-3 { // the last attribute's pad may be missing
			must.Fail(parseNotification(b[:n]))(t, syscall.EBADMSG, "%d bytes", n)
		}
	}
}

// FuzzMonitor gives the monitor's parsers any message.
func FuzzMonitor(f *testing.F) {
	b := must.Get(hex.DecodeString(notification))(f)
	f.Add(b)
	f.Add([]byte("add@/devices/virtual/infiniband/rxe0\x00ACTION=add\x00DEVPATH=/devices/virtual/infiniband/rxe0\x00SUBSYSTEM=infiniband\x00NAME=rxe0\x00"))
	f.Add([]byte("move@/a\x00ACTION=move\x00DEVPATH=/infiniband/a\x00SUBSYSTEM=infiniband\x00DEVPATH_OLD=\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if u, ok := parseUevent(b); ok {
			require.NotEmpty(t, u.Kind)
			require.NotEmpty(t, u.Device)
			require.NotContains(t, u.Device, "/")
		}
		e, err := parseNotification(b)
		if err != nil {
			require.ErrorIs(t, err, syscall.EBADMSG)
			return
		}
		require.NotEmpty(t, e.Kind)
		require.NotEmpty(t, e.Device)
		require.NotNil(t, e.Index)
	})
}
