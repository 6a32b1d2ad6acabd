package session_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
	"github.com/rdmashim/rdmashim/uapi/rpc/session"
)

// TestServerReturns: a server that refused for a while is asked again within
// 0.2 s of its return if it was away for 0.3 s, and within a second if for
// longer; one that stays away is not asked often.
func TestServerReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var asked []time.Duration
		c, err := session.Dial(nil, "", session.ClientConfig{Connect: func(context.Context, msgring.Config) (*msgring.Conn, error) {
			asked = append(asked, time.Since(start))
			return nil, uapi.ErrRefused
		}})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, c.Call(ctx, &session.Call{Method: "m", WaitForReady: true}), session.ErrNotSent)
		require.NoError(t, c.Close())
		next := func(back time.Duration) time.Duration {
			for _, at := range asked {
				if at >= back {
					return at - back
				}
			}
			return time.Hour
		}
		for away := 10 * time.Millisecond; away < 50*time.Second; away += away / 8 {
			require.LessOrEqual(t, next(away), min(max(away*2/5, 20*time.Millisecond), 1300*time.Millisecond), away)
		}
		require.LessOrEqual(t, next(300*time.Millisecond), 200*time.Millisecond)
		require.Less(t, len(asked), 120)
	})
}
