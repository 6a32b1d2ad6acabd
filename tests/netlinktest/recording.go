package netlinktest

import (
	"context"
	_ "embed" // the recording
	"encoding/hex"
	"fmt"
	"strings"
	"syscall"
	"testing/fstest"

	"github.com/rdmashim/rdmashim/kshim/nldev"
	"github.com/rdmashim/rdmashim/netlinkmgr"
)

// nldev61 was written by TestRecord of guesttest on Linux 6.1: an rxe link that
// a process uses. Its lines:
//
//	release R            the kernel's release
//	> COMMAND DUMP ATTRS a request, in hexadecimal
//	< ATTRS              an answer to it
//	file PATH TEXT       a file below the root
//	rdma ARGUMENTS       a call of iproute2's rdma 6.1 with -j
//	| TEXT               what it printed
//
//go:embed testdata/nldev-6.1.txt
var nldev61 string

// Recording holds a real kernel's answers, and iproute2's output for them.
type Recording struct {
	Release string
	Answers map[string][][]byte
	Files   fstest.MapFS
	Calls   []Call
}

// Call is a call of iproute2's rdma.
type Call struct{ Args, Output string }

// Recorded gives the recording of Linux 6.1.
func Recorded() (*Recording, error) { return parseRecording(nldev61) }

func parseRecording(text string) (*Recording, error) {
	r := &Recording{Answers: map[string][][]byte{}, Files: fstest.MapFS{}}
	var key string
	for n, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		kind, rest, _ := strings.Cut(line, " ")
		switch kind {
		case "#":
		case "release":
			r.Release = rest
		case ">":
			key = rest
			r.Answers[key] = nil
		case "<":
			b, err := hex.DecodeString(rest)
			if err != nil {
				return nil, fmt.Errorf("recording, line %d: %w", n+1, err)
			}
			r.Answers[key] = append(r.Answers[key], b)
		case "file":
			path, content, _ := strings.Cut(rest, " ")
			r.Files[path] = &fstest.MapFile{Data: []byte(content + "\n")}
		case "rdma":
			r.Calls = append(r.Calls, Call{Args: rest})
		case "|":
			r.Calls[len(r.Calls)-1].Output += rest + "\n"
		default:
			return nil, fmt.Errorf("recording, line %d: unknown line %q", n+1, kind)
		}
	}
	return r, nil
}

// Manager gives a manager of the recorded kernel. It answers requests that were
// made when it was recorded, and EOPNOTSUPP to the rest.
func (r *Recording) Manager() *netlinkmgr.Manager {
	return netlinkmgr.New(netlinkmgr.Kernel{
		RDMA: func(_ context.Context, q netlinkmgr.Request) ([][]byte, error) {
			answers, ok := r.Answers[fmt.Sprintf("%d %v %x", nldev.Command(q.Command), q.Dump, q.Attrs)]
			if !ok {
				return nil, syscall.EOPNOTSUPP
			}
			return answers, nil
		},
		NetDevs: func(context.Context) ([]netlinkmgr.NetDev, error) {
			return []netlinkmgr.NetDev{{Index: 5, Name: "ta", Kind: "veth", Ethernet: true, Up: true, Carrier: true, Addrs: Addrs("10.78.0.1/24")}}, nil
		},
		Root: r.Files, Release: r.Release,
	})
}
