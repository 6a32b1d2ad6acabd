package uapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// benchPair connects two devices of a kind.
func benchPair(b *testing.B, device string, depth, size int) (x, y *uapitest.End) {
	open := func() *uapi.Context {
		c, err := uapi.Open(device)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { c.Close() })
		return c
	}
	return uapitest.ConnectWith(b, open(), open(), uapi.QPConfig{SendDepth: depth, RecvDepth: depth}, size)
}

func kind(device string) string {
	name, _, _ := strings.Cut(device, "?")
	return name
}

// BenchmarkWrite keeps a queue of writes full.
func BenchmarkWrite(b *testing.B) {
	for _, device := range []string{"sim?net=bench", "soft?port=0"} {
		for _, size := range []int{64, 4096, 65536, 1 << 20} {
			b.Run(fmt.Sprintf("%s/%d", kind(device), size), func(b *testing.B) {
				const depth = 16
				x, _ := benchPair(b, device, depth, size)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				b.ResetTimer()
				outstanding := 0
				for range b.N {
					if outstanding == depth {
						outstanding -= len(x.Next(1))
					}
					x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, uint64(size)))
					outstanding++
				}
				x.Next(outstanding)
			})
		}
	}
}

// BenchmarkPingPong sends a small message there and back; each side sleeps
// until it comes.
func BenchmarkPingPong(b *testing.B) {
	for _, device := range []string{"sim?net=bench", "soft?port=0"} {
		b.Run(kind(device), func(b *testing.B) {
			x, y := benchPair(b, device, 4, 4096)
			done := make(chan struct{})
			turn := func(e *uapitest.End) { // one message in, the send's completion with it
				for range 2 {
					if err := e.Next(1)[0].Err(); err != nil {
						b.Error(err)
					}
				}
			}
			x.Must(x.PostRecv(x.QP, x.MR, 0, 64))
			y.Must(y.PostRecv(y.QP, y.MR, 0, 64))
			b.ResetTimer()
			go func() {
				defer close(done)
				for range b.N {
					if err := y.Next(1)[0].Err(); err != nil {
						b.Error(err)
					}
					y.PostRecv(y.QP, y.MR, 0, 64)
					y.PostSend(y.QP, y.MR, 64)
					y.Next(1)
				}
			}()
			for range b.N {
				x.PostSend(x.QP, x.MR, 64)
				turn(x)
				x.PostRecv(x.QP, x.MR, 0, 64)
			}
			<-done
		})
	}
}
