package rnic

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/tests/must"
)

type portEvents chan abi.EventType

func (e portEvents) Event(port uint8, t abi.EventType) {
	if port == 1 {
		e <- t
	}
}

// TestPortError: when its link fails, the port says so: by an event, by its
// state and by a counter. Closing the device is no failure.
func TestPortError(t *testing.T) {
	for _, failure := range []bool{true, false} {
		l := newFixed("10.0.0.1:4791", 4200)
		d := must.Get(New(Config{Name: "soft0", Link: l}))(t)
		events := make(portEvents, 2)
		var source driver.EventSource = d
		source.SetEvents(events)
		state := func() abi.PortState {
			a := must.Get(d.QueryPort(1))(t)
			return a.State
		}
		require.Equal(t, abi.PortActive, state())
		if failure {
			l.Close()
			require.Equal(t, abi.EventPortErr, <-events)
			require.Equal(t, abi.PortDown, state())
		}
		require.NoError(t, d.Close())
		require.Empty(t, events)
		require.Equal(t, failure, d.Counters()["link_downed"] == 1)
	}
}
