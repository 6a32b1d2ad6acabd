package sample

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rdmashim/rdmashim/tools/rdmashim/sample/samplepb"
)

// counter is the service Counter. It has its value in a file, if there is one,
// before it answers: a process that is killed loses no addition that a client
// knows of.
type counter struct {
	samplepb.UnimplementedCounterServer
	file  *os.File // nil for none
	below *cutter  // the server's

	mu    sync.Mutex
	value int64 // guarded by mu, as the file's bytes
}

// openCounter makes a counter that goes on where the file's was; "" is none.
func openCounter(path string, below *cutter) (*counter, error) {
	c := &counter{below: below}
	if path == "" {
		return c, nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the counter's file: %w", err)
	}
	var b [8]byte
	switch n, err := f.ReadAt(b[:], 0); {
	case n == len(b):
		c.value = int64(binary.BigEndian.Uint64(b[:]))
	case n > 0 || !errors.Is(err, io.EOF):
		_ = f.Close()
		return nil, fmt.Errorf("%s is no counter's file: %d bytes, not 8: %w", path, n, err)
	}
	c.file = f
	return c, nil
}

func (c *counter) close() error {
	if c.file == nil {
		return nil
	}
	return c.file.Close()
}

// Add executes once for each call that it is given.
func (c *counter) Add(_ context.Context, r *samplepb.AddRequest) (*samplepb.AddReply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	value := c.value + r.N
	if c.file != nil {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], uint64(value))
		if _, err := c.file.WriteAt(b[:], 0); err != nil {
			return nil, status.Errorf(codes.Internal, "write the counter: %v", err)
		}
	}
	c.value = value
	return &samplepb.AddReply{Value: value}, nil
}

// Read tells the value, how often the server cut a connection, and the fate of
// repeated calls.
func (c *counter) Read(context.Context, *samplepb.ReadRequest) (*samplepb.ReadReply, error) {
	r := &samplepb.ReadReply{}
	if c.below != nil {
		stats := c.below.sessions.Stats()
		r.Cuts, r.Replays, r.Attaches = c.below.cuts.Load(), stats.Replays, stats.Attaches
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Value = c.value
	return r, nil
}
