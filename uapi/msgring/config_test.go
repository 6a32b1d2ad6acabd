package msgring

import (
	"bytes"
	"log/slog"
	"math/bits"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring/core"
)

// TestConfigCheck: an error names the field.
func TestConfigCheck(t *testing.T) {
	for _, c := range []struct {
		config Config
		field  string
	}{
		{Config{Mode: 2}, "Config.Mode"},
		{Config{Ring: 1000}, "Config.Ring"},
		{Config{Ring: 8 << 10}, "Config.Ring"},
		{Config{Ring: 128 << 20}, "Config.Ring"},
		{Config{Ring: -16 << 10}, "Config.Ring"},
		{Config{MaxChunk: -1}, "Config.MaxChunk"},
		{Config{Session: Session{Epoch: 1}}, "Config.Session"},
		{Config{Mode: Bytes, Admit: func(asked Session) (Session, error) { return asked, nil }}, "Config.Admit"},
		{Config{Linger: -time.Second}, "Config.Linger"},
	} {
		err := c.config.Check()
		require.ErrorIs(t, err, syscall.EINVAL)
		require.ErrorContains(t, err, c.field)
	}
	require.NoError(t, (&Config{}).Check())
	require.NoError(t, (&Config{Mode: Messages, Ring: 64 << 20, MaxChunk: 1, Linger: 1}).Check())
}

// TestQueuesRound: a device rounds the depths of queues up to powers of two
// above them, and the keepalive's probe has a slot.
func TestQueuesRound(t *testing.T) {
	for _, mode := range []Mode{Bytes, Messages} {
		for ring := core.MinRing; ring <= 2<<20; ring *= 2 {
			c := Config{Mode: mode, Ring: ring}
			q := c.queuePair(&memory{})
			slots := 128
			if ring < 64<<10 {
				slots = 64
			}
			require.Equal(t, slots, 1<<bits.Len(uint(q.SendDepth+1)))
			require.Equal(t, 128, 1<<bits.Len(uint(q.RecvDepth)))
			require.Equal(t, 2*slots, 1<<bits.Len(uint(c.entries())))
		}
	}
}

// TestDefaultRing: rings are smaller of messages and on a kernel's device, and
// smaller still where little memory may be locked, of which the logger is told
// once.
func TestDefaultRing(t *testing.T) {
	saidLittle = sync.Once{}
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	for _, c := range []struct {
		mode  Mode
		kind  uapi.Kind
		limit int64
		ring  int
	}{
		{Bytes, "soft", 8 << 20, DefaultRing},
		{Bytes, "sim", 0, DefaultRing},
		{Messages, "soft", -1, LesserRing},
		{Bytes, "host", -1, LesserRing},
		{Messages, "host", 64 << 20, LesserRing},
		{Bytes, "host", 64<<20 - 1, LittleRing},
		{Messages, "host", 0, LittleRing},
	} {
		require.Equal(t, c.ring, defaultRing(c.mode, c.kind, func() int64 { return c.limit }, log), "%+v", c)
	}
	require.Equal(t, 1, bytes.Count(said.Bytes(), []byte("ulimit -l")), said.String())
}
