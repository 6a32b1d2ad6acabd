package rdma

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

func (t *tool) monitor() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "monitor",
		Short: "Print events of the kernel's RDMA devices as they come",
		Long: `monitor prints what the kernel tells of RDMA devices and their network devices,
until it is interrupted; with -j one JSON object to a line (NDJSON). Devices
come and go by the kernel's RDMA notifications where it has them (Linux 6.13),
else by uevents; what it listens to is said on stderr.

    REGISTER UNREGISTER RENAME                   devices
    NETDEV_ATTACH NETDEV_DETACH NETDEV_RENAME    network devices of ports (Linux
                                                 6.13)
    NETDEV_STATE                                 such a device's state and MTU
    LOST                                         events came too fast to be told

Of ports and GIDs the kernel tells only a program that has the device open: that
is Context.Events of package uapi, which soft devices have, too.`,
		Example: "  rdmashim monitor\n  rdmashim monitor -j | jq -r .event_type",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && args[0] != "help" {
				return cli.Usagef("monitor takes no arguments, got %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return t.run(cmd, args, monitor) },
	}
	addFlags(cmd.PersistentFlags())
	return cmd
}

func monitor(c *call, _ []string) error {
	var failed error
	ctx, stop := context.WithCancelCause(c.ctx)
	defer stop(nil)
	err := c.m.Monitor(ctx, netlinkmgr.MonitorOptions{
		Log: func(s string) { fmt.Fprintln(c.err, s) },
		Event: func(e netlinkmgr.Event) {
			if failed == nil {
				if failed = c.printEvent(&e); failed != nil {
					stop(failed) // the reader has gone
				}
			}
		},
	})
	if failed != nil {
		return failed
	}
	return err
}

// printEvent prints a line at once.
func (c *call) printEvent(e *netlinkmgr.Event) error {
	r := eventRow(e)
	if !c.json {
		return c.print([]row{r})
	}
	var b strings.Builder
	writeObject(&b, r, false) // one line, or it were no NDJSON
	b.WriteByte('\n')
	_, err := c.out.Write([]byte(b.String()))
	return err
}

// eventRow has iproute2's keys (rdma monitor) first, then ours.
func eventRow(e *netlinkmgr.Event) row {
	var r row
	r.add(field{"time", e.Time.Format(time.RFC3339Nano), e.Time.Format("15:04:05.000 ")}, field{"event_type", string(e.Kind), "[" + string(e.Kind) + "]\t"})
	if e.Device != "" {
		if e.Index != nil {
			r.add(field{"rdma_index", *e.Index, fmt.Sprintf("dev %d ", *e.Index)})
		} else {
			r.add(field{text: "dev "})
		}
		r.add(field{"rdma_dev", e.Device, e.Device})
	}
	if e.Port != 0 {
		r.add(field{"port", e.Port, fmt.Sprintf(" port %d", e.Port)})
	}
	if e.NetDevIndex != 0 {
		r.add(field{"netdev_idx", e.NetDevIndex, fmt.Sprintf(" netdev %d", e.NetDevIndex)})
	}
	if e.NetDev != "" {
		r.add(field{"netdev_name", e.NetDev, " " + e.NetDev})
	}
	if e.Old != "" {
		r.add(field{"old_name", e.Old, " was " + e.Old})
	}
	if e.State != "" {
		r.add(field{"state", e.State, " " + e.State}, field{"mtu", e.MTU, fmt.Sprintf(" mtu %d", e.MTU)})
	}
	r.add(field{key: "source", value: string(e.Source)})
	return r
}
