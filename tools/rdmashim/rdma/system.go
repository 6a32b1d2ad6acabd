package rdma

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

func (t *tool) system() *cobra.Command {
	return t.object("system", "Show and set what concerns all of the kernel's RDMA",
		"system shows and sets in iproute2's words what concerns all RDMA devices.", "  rdmashim system", systemShow,
		t.command("show [netns|privileged-qkey|monitor]", "Show the settings", "  rdmashim system show -j", systemShow),
		t.command("set {netns {shared|exclusive} | privileged-qkey {on|off}}", "Set the network namespace mode, and who may use controlled Q_Keys",
			"  sudo rdmashim system set netns exclusive\n  sudo rdmashim system set privileged-qkey off", systemSet))
}

func systemShow(c *call, args []string) error {
	w := words{"system show", args}
	if len(args) > 0 {
		// As in iproute2, the word is checked and all is shown.
		word, _ := w.next("")
		if !strings.HasPrefix("netns", word) && !strings.HasPrefix("privileged-qkey", word) && !strings.HasPrefix("monitor", word) {
			return cli.Usagef("system show: %q is none of netns, privileged-qkey, monitor", word)
		}
	}
	if err := w.end(); err != nil {
		return err
	}
	s, err := c.m.System(c.ctx)
	if err != nil {
		return err
	}
	var r row
	r.add(keyed("netns", s.NetNS))
	if s.PrivilegedQKey != nil {
		r.add(onOff("privileged-qkey", *s.PrivilegedQKey))
	}
	if s.Monitor != nil {
		r.add(onOff("monitor", *s.Monitor))
	}
	fork := onOff("copy-on-fork", s.CopyOnFork)
	fork.text = strings.TrimSuffix(fork.text, " ")
	r.add(fork)
	return c.print([]row{r})
}

func systemSet(c *call, args []string) error {
	w := words{"system set", args}
	what, err := w.next("the word netns or privileged-qkey")
	if err != nil {
		return err
	}
	set, on, off := c.m.SetNetNS, "shared", "exclusive"
	switch {
	case strings.HasPrefix("netns", what):
		what = "netns"
	case strings.HasPrefix("privileged-qkey", what):
		what, set, on, off = "privileged-qkey", c.m.SetPrivilegedQKey, "on", "off"
	default:
		return cli.Usagef("%s: %q stands where the word netns or privileged-qkey belongs", w.cmd, what)
	}
	got, err := w.take("the mode, " + on + " or " + off + ",")
	if err != nil {
		return err
	}
	if got[0] != on && got[0] != off {
		return cli.Usagef("%s %s: %q is neither %s nor %s", w.cmd, what, got[0], on, off)
	}
	return set(c.ctx, got[0] == on)
}
