package sample

import (
	"context"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rdmashim/rdmashim/tools/rdmashim/sample/samplepb"
)

const (
	// kvMaxValue is the longest value, and kvMessage the longest message, in
	// bytes: it has a key besides, and their lengths.
	kvMaxValue = 64 << 20
	kvMessage  = kvMaxValue + 4<<10
	kvMaxKey   = 1 << 10
)

// store is the service Store.
type store struct {
	samplepb.UnimplementedStoreServer
	most int64 // bytes of all keys and values

	mu     sync.RWMutex
	values map[string][]byte // guarded by mu; a value never changes
	held   int64             // guarded by mu; bytes
}

func newStore(most int64) *store { return &store{most: most, values: map[string][]byte{}} }

// Put keeps a value in the place of the one before. Errors: INVALID_ARGUMENT,
// and RESOURCE_EXHAUSTED where the store is full.
func (s *store) Put(_ context.Context, r *samplepb.PutRequest) (*samplepb.PutReply, error) {
	if r.Key == "" || len(r.Key) > kvMaxKey || len(r.Value) > kvMaxValue {
		return nil, status.Errorf(codes.InvalidArgument, "a key of %d bytes and a value of %d: want 1 … %d and at most %d", len(r.Key), len(r.Value), kvMaxKey, kvMaxValue)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old, replaced := s.values[r.Key]
	more := int64(len(r.Value) - len(old))
	if !replaced {
		more += int64(len(r.Key))
	}
	if s.held+more > s.most {
		return nil, status.Errorf(codes.ResourceExhausted, "the store has %d of %d bytes left (--max-bytes); delete some keys", s.most-s.held, s.most)
	}
	s.held += more
	s.values[r.Key] = r.Value
	return &samplepb.PutReply{Replaced: replaced}, nil
}

// Get returns a value. Error: NOT_FOUND.
func (s *store) Get(_ context.Context, r *samplepb.GetRequest) (*samplepb.GetReply, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	v, ok := s.values[r.Key]
	if !ok {
		return nil, status.Errorf(codes.NotFound, "no key %q", r.Key)
	}
	return &samplepb.GetReply{Value: v}, nil
}

// Delete forgets a key. Error: NOT_FOUND.
func (s *store) Delete(_ context.Context, r *samplepb.DeleteRequest) (*samplepb.DeleteReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.values[r.Key]
	if !ok {
		return nil, status.Errorf(codes.NotFound, "no key %q", r.Key)
	}
	s.held -= int64(len(r.Key) + len(v))
	delete(s.values, r.Key)
	return &samplepb.DeleteReply{}, nil
}

// Scan sends the keys with a prefix, in their order, as they are now.
func (s *store) Scan(r *samplepb.ScanRequest, stream samplepb.Store_ScanServer) error {
	s.mu.RLock()
	var found []*samplepb.ScanReply
	for key, v := range s.values {
		if strings.HasPrefix(key, r.Prefix) {
			found = append(found, &samplepb.ScanReply{Key: key, Bytes: int64(len(v))})
		}
	}
	s.mu.RUnlock()
	slices.SortFunc(found, func(a, b *samplepb.ScanReply) int { return strings.Compare(a.Key, b.Key) })
	for _, one := range found {
		if err := stream.Send(one); err != nil {
			return err
		}
	}
	return nil
}
