package rdma

import (
	"context"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// tool is the state that the commands share.
type tool struct {
	open func() (*netlinkmgr.Manager, error)
}

// Commands are the six objects of iproute2's rdma, on the kernel that open
// gives.
func Commands(open func() (*netlinkmgr.Manager, error)) []*cobra.Command {
	t := &tool{open}
	return []*cobra.Command{t.link(), t.dev(), t.resource(), t.statistic(), t.system(), t.monitor()}
}

// call is one call of a command.
type call struct {
	ctx     context.Context
	m       *netlinkmgr.Manager
	out     io.Writer
	err     io.Writer
	json    bool
	pretty  bool
	details int // 2 shows what drivers tell
}

// addFlags adds iproute2's options, which may stand before an object and behind
// it.
func addFlags(f *pflag.FlagSet) {
	f.BoolP("json", "j", false, "print JSON")
	f.BoolP("pretty", "p", false, "print JSON with line breaks, counters one to a line")
	f.CountP("details", "d", "print details; twice: what the driver tells, too")
}

// call reads the options and opens the manager.
func (t *tool) call(cmd *cobra.Command) (*call, error) {
	f := cmd.Flags()
	c := &call{ctx: cmd.Context(), out: cmd.OutOrStdout(), err: cmd.ErrOrStderr()}
	c.json, _ = f.GetBool("json")
	c.pretty, _ = f.GetBool("pretty")
	c.details, _ = f.GetCount("details")
	var err error
	c.m, err = t.open()
	return c, err
}

// object makes the command of an object. Without a word it shows.
func (t *tool) object(name, short, long, example string, show func(*call, []string) error, more ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:     name,
		Short:   short,
		Long:    long,
		Example: example,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && args[0] != "help" {
				return cli.Usagef("unknown %s command %q", name, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cmd.Help()
			}
			return t.run(cmd, nil, show)
		},
	}
	addFlags(cmd.PersistentFlags())
	cmd.AddCommand(more...)
	return cmd
}

// command makes a command of an object.
func (t *tool) command(use, short, example string, do func(*call, []string) error) *cobra.Command {
	return &cobra.Command{
		Use:     use,
		Short:   short,
		Example: example,
		Args:    cobra.ArbitraryArgs,
		RunE:    func(cmd *cobra.Command, args []string) error { return t.run(cmd, args, do) },
	}
}

func (t *tool) run(cmd *cobra.Command, args []string, do func(*call, []string) error) error {
	if len(args) == 1 && args[0] == "help" {
		return cmd.Help()
	}
	c, err := t.call(cmd)
	if err != nil {
		return err
	}
	return do(c, args)
}

// words reads the rest of a command line of words.
type words struct {
	cmd  string // for messages
	rest []string
}

// next takes the next word; it is an error when there is none.
func (w *words) next(what string) (string, error) {
	if len(w.rest) == 0 {
		return "", cli.Usagef("%s: %s is missing", w.cmd, what)
	}
	word := w.rest[0]
	w.rest = w.rest[1:]
	return word, nil
}

// take reads all words. Each of wants describes a value, behind a keyword and a
// colon where one goes before it, which may be shortened.
func (w *words) take(wants ...string) (values []string, err error) {
	for _, want := range wants {
		if key, what, ok := strings.Cut(want, ":"); ok {
			got, err := w.next("the word " + key)
			if err != nil {
				return nil, err
			}
			if !strings.HasPrefix(key, got) {
				return nil, cli.Usagef("%s: %q stands where the word %s belongs", w.cmd, got, key)
			}
			want = what
		}
		v, err := w.next(want)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, w.end()
}

// end checks that nothing is left.
func (w *words) end() error {
	if len(w.rest) > 0 {
		return cli.Usagef("%s: nothing may follow, but %q does", w.cmd, w.rest[0])
	}
	return nil
}

// portSpec is DEV, DEV/PORT or DEV/- (what belongs to no port).
type portSpec struct {
	dev  string // empty: all devices
	port uint32 // 0 with all unset: DEV/-
	all  bool   // all ports
}

func parsePortSpec(s string) (portSpec, error) {
	dev, port, ok := strings.Cut(s, "/")
	switch {
	case dev == "":
		return portSpec{}, cli.Usagef("%q names no device; write DEV or DEV/PORT", s)
	case !ok || port == "":
		return portSpec{dev: dev, all: true}, nil
	case port == "-":
		return portSpec{dev: dev}, nil
	}
	n, err := strconv.ParseUint(port, 10, 8)
	if err != nil || n == 0 {
		return portSpec{}, cli.Usagef("%q is no port; write DEV or DEV/PORT, ports count from 1", s)
	}
	return portSpec{dev: dev, port: uint32(n)}, nil
}

// devices lists the device that is named, or all.
func (c *call) devices(name string) ([]netlinkmgr.Device, error) {
	if name == "" {
		return c.m.Devices(c.ctx)
	}
	d, err := c.m.Device(c.ctx, name)
	return []netlinkmgr.Device{d}, err
}

// links lists the ports that a line of [DEV[/PORT]] means, behind a keyword
// where one is given.
func (c *call) links(cmd, keyword string, args []string) ([]netlinkmgr.Port, []netlinkmgr.Device, error) {
	spec := portSpec{all: true}
	if len(args) > 0 {
		w := words{cmd, args}
		got, err := w.take(keyword + "the link, DEV or DEV/PORT,")
		if err == nil {
			spec, err = parsePortSpec(got[0])
		}
		if err == nil && !spec.all && spec.port == 0 {
			err = cli.Usagef("%s: a link is a port; %q names none", cmd, got[0])
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return c.ports(spec)
}

// ports lists the ports that a specification means.
func (c *call) ports(s portSpec) ([]netlinkmgr.Port, []netlinkmgr.Device, error) {
	list, err := c.devices(s.dev)
	if err != nil {
		return nil, nil, err
	}
	var ports []netlinkmgr.Port
	var owners []netlinkmgr.Device
	for _, d := range list {
		if s.port > d.Ports {
			return nil, nil, cli.Usagef("%s has no port %d; it has %d", d.Name, s.port, d.Ports)
		}
		all, err := c.m.Ports(c.ctx, d)
		if err != nil {
			return nil, nil, err
		}
		for _, p := range all {
			if s.dev == "" || s.all || p.Port == s.port {
				ports, owners = append(ports, p), append(owners, d)
			}
		}
	}
	return ports, owners, nil
}
