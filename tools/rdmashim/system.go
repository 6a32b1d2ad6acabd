package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/netlinkmgr"
)

func (t *rdmaTool) system() *cobra.Command {
	return t.object("system", "Show and set what concerns all of the kernel's RDMA",
		"system shows and sets in iproute2's words what concerns all of the kernel's RDMA.", systemShow,
		t.command("show [netns|privileged-qkey|monitor]", "Show the settings", systemShow),
		t.command("set netns {shared|exclusive} | privileged-qkey {on|off}", "Say whether network namespaces share the RDMA devices, and whom high Q_Keys are for", systemSet))
}

func systemShow(c *rdmaCall, args []string) error {
	w := words{"system show", args}
	if len(args) > 0 {
		// As in iproute2, the word is checked and all is shown.
		word, _ := w.next("")
		if !strings.HasPrefix("netns", word) && !strings.HasPrefix("privileged-qkey", word) && !strings.HasPrefix("monitor", word) {
			return usagef("system show: %q is none of netns, privileged-qkey, monitor", word)
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

func systemSet(c *rdmaCall, args []string) error {
	w := words{"system set", args}
	what, err := w.next("netns or privileged-qkey")
	if err != nil {
		return err
	}
	switch {
	case what != "" && strings.HasPrefix("netns", what):
		return systemSetNetNS(c, &w)
	case what != "" && strings.HasPrefix("privileged-qkey", what):
		w.cmd = "system set privileged-qkey"
		on, err := w.onOff()
		if err != nil {
			return err
		}
		return c.m.SetPrivilegedQKey(c.ctx, on)
	}
	return usagef("system set: %q is neither netns nor privileged-qkey", what)
}

func systemSetNetNS(c *rdmaCall, w *words) error {
	w.cmd = "system set netns"
	word, err := w.next("the mode, shared or exclusive,")
	if err != nil {
		return err
	}
	mode, err := netNSMode(word)
	if err != nil {
		return usagef("%s: %w", w.cmd, err)
	}
	if err := w.end(); err != nil {
		return err
	}
	return c.m.SetNetNS(c.ctx, mode == netlinkmgr.NetNSShared)
}

// onOff takes the last word, on or off.
func (w *words) onOff() (bool, error) {
	word, err := w.next("on or off")
	if err != nil {
		return false, err
	}
	if word != "on" && word != "off" {
		return false, usagef("%s: %q is neither on nor off", w.cmd, word)
	}
	return word == "on", w.end()
}
