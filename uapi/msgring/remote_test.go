package msgring_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
)

// remote is two connected ends for tests of READs.
type remote struct {
	t    *testing.T
	a, b *msgring.Conn
}

// reading runs a test of READs on a network with faults, in virtual time.
func reading(t *testing.T, faults string, test func(t *testing.T, r remote)) {
	onSim(t, faults, msgring.Config{Mode: msgring.Messages, Linger: time.Second}, func(t *testing.T, a, b *msgring.Conn) {
		test(t, remote{t, a, b})
	})
}

// offered registers n random bytes at b, and returns them and where a finds
// them.
func (r remote) offered(n int) (data []byte, addr uint64, rkey uint32) {
	data = make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(data)
	_, addr, rkey, err := r.b.RegMR(data, uapi.AccessRemoteRead)
	require.NoError(r.t, err)
	return data, addr, rkey
}

// pump reads messages at both ends until they are closed.
func (r remote) pump() (ended *sync.WaitGroup) {
	ended = &sync.WaitGroup{}
	for _, c := range []*msgring.Conn{r.a, r.b} {
		ended.Go(func() {
			for {
				b, err := c.Peek()
				if err != nil {
					return
				}
				c.Discard(len(b))
			}
		})
	}
	return ended
}

// many has a READ of each of some sizes, all at once, beside messages.
func (r remote) many() {
	data, addr, rkey := r.offered(24 << 20) // more than a device's longest message
	sink := make([]byte, len(data))
	mr, _, _, err := r.a.RegMR(sink, uapi.AccessLocalWrite)
	require.NoError(r.t, err)
	order := make(chan int, 100)
	offset, i := 0, 0
	for n := 1; offset+n <= len(data); n *= 2 {
		k, at := i, uint64(offset)
		require.NoError(r.t, r.a.PostRead(mr, at, uint64(n), addr+at, rkey, func(err error) {
			if err != nil {
				k = -1
			}
			order <- k
		}))
		offset, i = offset+n, i+1
		_, err = r.a.Write(binary.BigEndian.AppendUint64(nil, at))
		require.NoError(r.t, err)
	}
	for want := range i {
		require.Equal(r.t, want, <-order)
	}
	require.True(r.t, bytes.Equal(data[:offset], sink[:offset]))
	require.NoError(r.t, r.a.DeregMR(mr))
	require.ErrorIs(r.t, r.a.DeregMR(mr), syscall.EINVAL)
}

// TestReads: many READs at once complete in order beside messages, under
// faults, too.
func TestReads(t *testing.T) {
	for _, faults := range []string{"", "loss=2%&reorder=10%&dup=2%&seed=5"} {
		reading(t, faults, func(t *testing.T, r remote) {
			ended := r.pump()
			r.many()
			closeBoth(t, r.a, r.b)
			ended.Wait()
		})
	}
}

// TestReadsOnNetwork is TestReads over UDP on loopback, or on a real device.
func TestReadsOnNetwork(t *testing.T) {
	device := must.Get(uapi.Open(cmp.Or(realDevice, "soft"), uapi.OpenConfig{}))(t)
	defer func() { require.NoError(t, device.Close()) }()
	r := remote{t: t}
	r.a, r.b = connect(t, device, device, msgring.Config{Mode: msgring.Messages})
	ended := r.pump()
	r.many()
	closeBoth(t, r.a, r.b)
	ended.Wait()
}

// TestReadRefused: a READ that the peer's device refuses ends the connection,
// and each READ's done is called once, with an error.
func TestReadRefused(t *testing.T) {
	reading(t, "", func(t *testing.T, r remote) {
		ended := r.pump()
		_, addr, rkey := r.offered(1 << 20)
		sink := make([]byte, 1<<20)
		mr, _, _, err := r.a.RegMR(sink, uapi.AccessLocalWrite)
		require.NoError(t, err)
		var mu sync.Mutex
		told := map[int][]error{}
		const bad, all = 2, 10
		taken := 0
		for ; taken < all; taken++ {
			i, key := taken, rkey
			if i == bad {
				key++
			}
			err := r.a.PostRead(mr, 0, 1<<20, addr, key, func(err error) {
				mu.Lock()
				told[i] = append(told[i], err)
				mu.Unlock()
			})
			if err != nil { // the refusal was quicker than these posts
				require.ErrorContains(t, err, "REM_ACCESS_ERR")
				break
			}
		}
		require.Greater(t, taken, bad)
		ended.Wait() // both ends' connections have ended
		closeBoth(t, r.a, r.b)
		done := 0
		require.Len(t, told, taken)
		for i := range taken {
			require.Len(t, told[i], 1)
			if told[i][0] == nil {
				require.Equal(t, done, i, "a READ behind one that failed is complete")
				done++
			}
		}
		require.LessOrEqual(t, done, bad)
		require.ErrorIs(t, r.a.PostRead(mr, 0, 1, addr, rkey, nil), net.ErrClosed)
		_, _, _, err = r.a.RegMR(sink, uapi.AccessLocalWrite)
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

// TestReadsAtClose: Close ends READs that are under way or wait, each once, and
// the registrations.
func TestReadsAtClose(t *testing.T) {
	reading(t, "", func(t *testing.T, r remote) {
		_, addr, rkey := r.offered(1 << 20)
		sink := make([]byte, 1<<20)
		mr, _, _, err := r.a.RegMR(sink, uapi.AccessLocalWrite)
		require.NoError(t, err)
		told := make(chan error, 20)
		for range 10 {
			require.NoError(t, r.a.PostRead(mr, 0, 1<<20, addr, rkey, func(err error) { told <- err }))
		}
		require.NoError(t, r.a.Abort())
		require.NoError(t, r.a.CloseContext(context.Background()))
		require.Len(t, told, 10)
		closeBoth(t, r.a, r.b)
		require.Len(t, told, 10)
	})
}

// TestRegistrationsAtClose: Close waits for registrations that are under way,
// and ends all.
func TestRegistrationsAtClose(t *testing.T) {
	device := must.Get(uapi.Open("soft", uapi.OpenConfig{}))(t)
	defer func() { require.NoError(t, device.Close()) }()
	a, b := connect(t, device, device, msgring.Config{Mode: msgring.Messages})
	var all, begun sync.WaitGroup
	for range 4 {
		begun.Add(1)
		all.Go(func() {
			mem, once := make([]byte, 1<<16), sync.OnceFunc(begun.Done)
			for i := 0; ; i++ {
				mr, _, _, err := a.RegMR(mem, uapi.AccessLocalWrite)
				if err == nil && i > 0 { // one is left for Close
					err = a.DeregMR(mr)
				}
				once()
				if err != nil {
					if !errors.Is(err, net.ErrClosed) {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	begun.Wait()
	closeBoth(t, a, b) // the protection domain is gone: no registration is left
	all.Wait()
}

// TestReadsNeedMessages: a stream of bytes has no READs.
func TestReadsNeedMessages(t *testing.T) {
	device := must.Get(uapi.Open("sim", uapi.OpenConfig{}))(t)
	defer func() { require.NoError(t, device.Close()) }()
	a, _ := connect(t, device, device, msgring.Config{})
	_, _, _, err := a.RegMR(make([]byte, 1), uapi.AccessLocalWrite)
	require.ErrorIs(t, err, syscall.EINVAL)
	require.ErrorIs(t, a.PostRead(0, 0, 1, 0, 0, nil), syscall.EINVAL)
}

func closeBoth(t *testing.T, a, b *msgring.Conn) {
	_ = a.Close()
	_ = b.Close()
	givenBack(t, a, b)
}
