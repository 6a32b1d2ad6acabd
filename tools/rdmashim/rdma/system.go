package rdma

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/rdmashim/internal/cli"
)

func (t *tool) system() *cobra.Command {
	return t.object("system", "Show and set what concerns all of the kernel's RDMA",
		"system shows and sets in iproute2's words what concerns all RDMA devices.", "  rdmashim system", systemShow,
		t.command("show [netns|privileged-qkey|monitor]", "Show the settings", "  rdmashim system show -j", systemShow),
		t.command("set netns {shared|exclusive}", "Say whether network namespaces share the RDMA devices", "  sudo rdmashim system set netns exclusive", systemSet))
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
	got, err := w.take("netns:the mode, shared or exclusive,")
	if err != nil {
		return err
	}
	if got[0] != "shared" && got[0] != "exclusive" {
		return cli.Usagef("%s netns: %q is neither shared nor exclusive", w.cmd, got[0])
	}
	return c.m.SetNetNS(c.ctx, got[0] == "shared")
}
