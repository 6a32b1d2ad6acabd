//go:build !race

package rpc

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
)

// TestAllocations: of both ends and all that is below them, besides the
// four messages. The race detector has pools forget.
func TestAllocations(t *testing.T) {
	c := testgrpc.NewTestServiceClient(ours(t, ServerConfig{}, ClientConfig{}))
	least := 1000.0
	for range 20 { // a busy machine wakes more goroutines, which allocate, too
		least = min(least, testing.AllocsPerRun(200, func() {
			if _, err := c.EmptyCall(context.Background(), &testgrpc.Empty{}); err != nil {
				t.Fatal(err)
			}
		}))
	}
	require.LessOrEqual(t, least-4, 8.0)
}
