package bridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"sync/atomic"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/rnic/link/rules"
	"github.com/rdmashim/rdmashim/tools/internal/bump"
)

// runner is a run of the command.
type runner struct {
	o       options
	bridge  *bump.Bridge
	capture *capture         // nil: none
	bytes   [2]atomic.Uint64 // that left, of each direction
	texts   []string         // of the rules
}

// run bridges until the context ends.
func run(ctx context.Context, o options, stdout, stderr io.Writer) (err error) {
	r := &runner{o: o}
	usr1 := make(chan os.Signal, 1)
	signal.Notify(usr1, unix.SIGUSR1)
	defer signal.Stop(usr1)
	if r.bridge, err = r.open(); err != nil {
		return err
	}
	if o.file != "" {
		if r.capture, err = create(o.file, o.netdevs); err != nil {
			return errors.Join(err, r.bridge.Close())
		}
	}
	fmt.Fprintf(stderr, "rdmashim: bridging %s and %s; interrupt to end\n", o.netdevs[0], o.netdevs[1])
	r.bridge.Start()
	for err == nil {
		select {
		case <-usr1:
			report := r.report()
			if err = report.print(stdout, o.asJSON); err == nil && r.capture != nil {
				err = r.capture.flush()
			}
			continue
		case <-r.bridge.Ended():
		case <-ctx.Done():
		}
		break
	}
	report := r.report()
	err = errors.Join(err, r.bridge.Close())
	if r.capture != nil {
		err = errors.Join(err, r.capture.close())
	}
	report.idle(stderr)
	return errors.Join(err, report.print(stdout, o.asJSON))
}

// open opens both interfaces.
func (r *runner) open() (*bump.Bridge, error) {
	var sockets [2]int
	o := bump.Options{Names: r.o.netdevs, Left: r.left}
	for i, name := range r.o.netdevs {
		set, err := rules.Parse(string(r.o.faults)) // each direction has its own
		if err == nil {
			r.texts = set.Texts()
			sockets[i], err = listen(name)
		}
		if err != nil {
			if i == 1 {
				unix.Close(sockets[0])
			}
			return nil, err
		}
		o.Paths[i] = bump.Path{MTU: bump.AnyMTU, Rules: set}
	}
	return bump.New(sockets, o)
}

// listen opens a packet socket on an interface that can be bridged.
func listen(name string) (socket int, err error) {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return -1, fmt.Errorf("%s: %w; 'ip link' lists the interfaces", name, err)
	}
	switch a := l.Attrs(); {
	case a.EncapType != "ether":
		return -1, fmt.Errorf("%s is no Ethernet: %w", name, unix.EINVAL)
	case a.MasterIndex != 0:
		return -1, fmt.Errorf("%s is the port of another interface, which takes its frames: ip link set %s nomaster: %w", name, name, unix.EBUSY)
	case a.Flags&net.FlagUp == 0:
		return -1, fmt.Errorf("%s is down: ip link set %s up: %w", name, name, unix.ENETDOWN)
	}
	socket, err = bump.Listen(l.Attrs().Index, true)
	if errors.Is(err, unix.EPERM) {
		return -1, fmt.Errorf("bridge %s: needs root or CAP_NET_RAW; use sudo, or give the program the capability (setcap cap_net_raw+ep FILE): %w", name, err)
	}
	if err != nil {
		return -1, fmt.Errorf("bridge %s: %w", name, err)
	}
	return socket, nil
}

// left counts and records a frame that left.
func (r *runner) left(way int, frame []byte) {
	r.bytes[way].Add(uint64(len(frame)))
	if r.capture != nil {
		r.capture.left(1-way, frame)
	}
}

func (r *runner) report() *Report {
	report := &Report{}
	for i := range report.Ways {
		c, hits := r.bridge.Count(i)
		w := Way{
			From: r.o.netdevs[i], To: r.o.netdevs[1-i], Frames: c.Delivered, Bytes: r.bytes[i].Load(),
			RoCE: c.RoCE, Dropped: c.Lost, Refused: c.Refused, Overrun: c.Overrun, Rules: []Rule{},
		}
		for j, n := range hits {
			w.Rules = append(w.Rules, Rule{r.texts[j], n})
		}
		report.Ways[i] = w
	}
	return report
}
