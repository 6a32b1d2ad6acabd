package shm

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"math/rand/v2"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// The bytes of a hello and of a ring with two records are those of the golden
// file: a ring mapped or a hello sent by another build must read the same.
func TestGolden(t *testing.T) {
	h := hello{device: netip.MustParseAddrPort("127.0.0.5:4791"), memory: memorySize, nonce: nonce{1, 2, 3, 15: 16}, token: nonce{4, 15: 5}}
	mem := make([]byte, memorySize)
	p, c := newProducer(mem), newConsumer(mem)
	c.sleep()
	require.NoError(t, p.put(0, bytes.Repeat([]byte{0xaa}, 16), []byte("payload"), []byte{0}))
	require.NoError(t, p.put(sealed, bytes.Repeat([]byte{0xbb}, 12), nil, []byte{1, 2, 3, 4}))
	must.Get(p.putRef(bytes.Repeat([]byte{0xcc}, 16), 7, 0x12345, 4096))(t)
	tail := hex.Dump(mem[tailAt:][:8])
	require.True(t, p.publish())
	require.Equal(t, hex.Dump(make([]byte, 8)), tail, "nothing is seen before publish")
	got := "hello\n" + hex.Dump(h.append(nil)) + "words: tail, head, asleep\n" +
		hex.Dump(mem[tailAt:][:8]) + hex.Dump(mem[headAt:][:8]) + hex.Dump(mem[asleepAt:][:8]) +
		"records\n" + hex.Dump(mem[dataAt:][:120])
	const file = "testdata/layout.golden"
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o666))
	}
	want := must.Get(os.ReadFile(file))(t)
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		require.Equal(t, strings.ReplaceAll(string(want), "\r", ""), got)
	}
	var back hello
	require.NoError(t, back.parse(h.append(nil)))
	require.Equal(t, h, back)
	for n := range helloLen {
		require.Error(t, back.parse(h.append(nil)[:n]))
	}
}

// take takes all records there are.
func take(t *testing.T, c *consumer) (list [][]byte) {
	t.Helper()
	for {
		var r record
		ok := must.Get(c.next(&r))(t)
		if !ok {
			c.release()
			return list
		}
		list = append(list, r.appendTo(nil))
	}
}

// Records of all lengths come out as they went in, over many turns of the ring.
func TestRecordsWrap(t *testing.T) {
	mem := make([]byte, memorySize)
	p, c := newProducer(mem), newConsumer(mem)
	random := rand.New(rand.NewPCG(1, 2))
	source := make([]byte, maxPacket)
	for i := range source {
		source[i] = byte(random.Uint32())
	}
	for range 200 {
		var want [][]byte
		for range random.IntN(int(room / recordSize(maxPacket))) {
			n := minPacket + random.IntN(maxPacket-minPacket+1)
			b := source[len(source)-n:]
			cut := random.IntN(n + 1)
			require.NoError(t, p.put(0, b[:cut], b[cut:], nil))
			want = append(want, b)
		}
		p.publish()
		require.Equal(t, want, take(t, c))
		require.True(t, c.empty())
	}
}

// A full ring takes nothing, and as much again as was released.
func TestFull(t *testing.T) {
	mem := make([]byte, memorySize)
	p, c := newProducer(mem), newConsumer(mem)
	b := make([]byte, 4096)
	n := 0
	for ; p.put(0, b, nil, nil) == nil; n++ {
	}
	require.EqualValues(t, room/recordSize(4096), n)
	p.publish()
	require.ErrorIs(t, p.put(0, b, nil, nil), errFull)
	ok, err := c.next(new(record))
	require.True(t, ok)
	require.NoError(t, err)
	require.ErrorIs(t, p.put(0, b, nil, nil), errFull, "taken, not released")
	c.release()
	require.NoError(t, p.put(0, b, nil, nil))
	require.ErrorIs(t, p.put(0, b, nil, nil), errFull)
}

// An index that cannot be the consumer's ends the ring for the producer.
func TestProducerDoubts(t *testing.T) {
	for _, head := range []uint64{8, 4, 1 << 63, ^uint64(7)} {
		mem := make([]byte, memorySize)
		p := newProducer(mem)
		word(mem, headAt).Store(head)
		require.ErrorIs(t, p.look(), errIndex, "head %d", head)
	}
}

// Producers and one consumer with a channel for its bell: every record
// arrives in order, and the consumer never sleeps on one.
func TestNoWakeUpIsLost(t *testing.T) {
	for _, producers := range []int{1, 2, 3} {
		event := make(chan struct{}, 1)
		var rings []*consumer
		var done sync.WaitGroup
		const each = 2000
		for range producers {
			mem := make([]byte, memorySize)
			rings = append(rings, newConsumer(mem))
			done.Go(func() {
				p, b := newProducer(mem), make([]byte, 16)
				for i := range each {
					binary.LittleEndian.PutUint64(b, uint64(i))
					for p.put(0, b, nil, nil) == errFull {
						runtime.Gosched()
					}
					if p.publish() {
						select {
						case event <- struct{}{}:
						default:
						}
					}
				}
			})
		}
		got := make([]uint64, producers)
		for sum := 0; sum < producers*each; {
			for i, c := range rings {
				for _, b := range take(t, c) {
					require.Equal(t, got[i], binary.LittleEndian.Uint64(b))
					got[i]++
					sum++
				}
			}
			if sum < producers*each && !sleepAll(rings) {
				<-event
			}
			for _, c := range rings {
				c.awake()
			}
		}
		done.Wait()
	}
}

// FuzzConsumer: whatever another process writes into a ring, and whenever,
// yields packets of lengths that packets have, or an error.
func FuzzConsumer(f *testing.F) {
	f.Add(uint64(24), uint64(0), []byte{12, 0, 0, 0})
	f.Add(uint64(room), uint64(room-8), bytes.Repeat([]byte{16, 0, 0, 0, 1, 0, 0, 0}, 9))
	f.Add(^uint64(0), uint64(8), []byte{})
	mem := make([]byte, memorySize)
	f.Fuzz(func(t *testing.T, tail, start uint64, data []byte) {
		clear(mem)
		c := newConsumer(mem)
		c.head = start &^ 7
		c.tail, c.released = c.head, c.head
		at := c.head % room
		copy(c.data[:at], data[copy(c.data[at:], data):])
		word(mem, tailAt).Store(tail)
		for range 4 {
			var r record
			ok, err := c.next(&r)
			if err != nil || !ok {
				break
			}
			require.GreaterOrEqual(t, r.len(), minPacket)
			require.LessOrEqual(t, r.len(), maxPacket)
			require.Len(t, r.appendTo(nil), r.len())
			if r.flags == referenced {
				require.LessOrEqual(t, r.len(), maxHeaders)
				r.state.Load()
			} else {
				require.Zero(t, r.flags&^sealed)
			}
			require.LessOrEqual(t, c.tail-c.head, uint64(room))
			c.release()
		}
	})
}
