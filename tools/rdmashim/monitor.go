package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/netlinkmgr"
)

func (t *rdmaTool) monitor() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "monitor",
		Short: "Print events of the kernel's RDMA devices, ports and GIDs as they come",
		Long: `monitor prints events of the kernel's RDMA devices, their ports, GID tables and
network devices as they come, until it is interrupted; with -j one JSON object to a
line (NDJSON). Devices come and go by the kernel's RDMA notifications where it has
them (Linux 6.13), else by uevents; what it listens to is said on stderr.

    REGISTER UNREGISTER RENAME                   devices
    NETDEV_ATTACH NETDEV_DETACH NETDEV_RENAME    network devices of ports
    NETDEV_STATE NETDEV_MTU                      what happens to these
    PORT_STATE                                   DOWN, ACTIVE …
    GID_ADD GID_DELETE                           entries of GID tables
    LOST                                         events came too fast to be told

Soft devices live in their processes: a program watches its own with
Context.Events of package uapi.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && args[0] != "help" {
				return usagef("monitor takes no arguments, got %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return t.run(cmd, args, monitor) },
	}
	rdmaFlags(cmd.PersistentFlags())
	return cmd
}

func monitor(c *rdmaCall, _ []string) error {
	var failed error
	ctx, stop := context.WithCancelCause(c.ctx)
	defer stop(nil)
	err := c.m.Monitor(ctx, netlinkmgr.MonitorOptions{
		Log: func(s string) { fmt.Fprintln(c.err, s) },
		Event: func(e netlinkmgr.Event) {
			if failed == nil {
				if failed = c.printEvent(&e); failed != nil {
					stop(failed) // nobody reads any more
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
func (c *rdmaCall) printEvent(e *netlinkmgr.Event) error {
	r := eventRow(e)
	var b strings.Builder
	if c.json {
		writeObject(&b, r, false) // one line, or it were no NDJSON
		b.WriteByte('\n')
	} else {
		for _, f := range r.fields {
			b.WriteString(f.text)
		}
		b.WriteByte('\n')
	}
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
	if e.From != "" {
		r.add(field{"from", e.From, " from " + e.From})
	}
	if e.To != "" {
		r.add(field{"to", e.To, " to " + e.To})
	}
	if g := e.GID; g != nil {
		r.add(field{"gid_index", g.Index, fmt.Sprintf(" index %d", g.Index)}, field{"gid", g.GID, " gid " + g.GID.String()}, field{"gid_type", string(g.Type), " " + string(g.Type)})
	}
	r.add(field{key: "source", value: string(e.Source)})
	return r
}
