package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/netlinkmgr"
)

// setupCommand makes a command that takes a setup's FILE.
func (t *rdmaTool) setupCommand(use, short, long string, do func(*rdmaCall, string, netlinkmgr.Setup) error) *cobra.Command {
	cmd := t.command(use+" FILE", short, func(c *rdmaCall, args []string) error {
		w := words{"link " + use, args}
		path, err := w.next("the FILE, or - for stdin,")
		if err != nil {
			return err
		}
		if err := w.end(); err != nil {
			return err
		}
		s, err := readSetup(path, c.in)
		if err != nil {
			return err
		}
		return do(c, path, s)
	})
	cmd.Long = long
	return cmd
}

func pruneFlag(cmd *cobra.Command, prune *bool) {
	cmd.Flags().BoolVar(prune, "prune", false, "delete the rxe links that FILE does not have, here and in namespaces with names")
}

func (t *rdmaTool) linkApply() *cobra.Command {
	var prune bool
	var cmd *cobra.Command
	cmd = t.setupCommand("apply", "Make the rxe links that a TOML file describes", `apply makes the rxe links of FILE, with the MTU of their network devices and the
network namespace mode, and prints what it changed. What is as it shall be stays
as it is, so apply may be called again. All is checked before the first change;
if a change fails, those before it are undone. A link of another name on the same
network device is renamed; who uses it keeps it.

    [system]
    netns = "shared"     # or "exclusive"; without it, the mode stays

    [[link]]
    name = "rxe0"
    netdev = "eth0"
    mtu = 9000           # optional: of the network device, in bytes
    netns = "blue"       # optional: network namespace that has the network device`,
		func(c *rdmaCall, _ string, s netlinkmgr.Setup) error {
			return linkApply(c, s, netlinkmgr.SetupOptions{Prune: prune}, isDryRun(cmd))
		})
	pruneFlag(cmd, &prune)
	dryRunFlag(cmd)
	return cmd
}

func linkApply(c *rdmaCall, s netlinkmgr.Setup, o netlinkmgr.SetupOptions, dry bool) error {
	apply := c.m.ApplySetup
	if dry {
		apply = c.m.PlanSetup
	}
	p, err := apply(c.ctx, s, o)
	if err != nil {
		return err
	}
	c.remarks(p)
	if len(p.Changes) == 0 {
		fmt.Fprintln(c.err, "nothing to change")
	}
	return c.print(changeRows(p.Changes, dry))
}

// remarks says on stderr what the user should know.
func (c *rdmaCall) remarks(p *netlinkmgr.Plan) {
	for _, s := range p.Warnings {
		fmt.Fprintln(c.err, "warning: "+s)
	}
	for _, l := range p.Extra {
		fmt.Fprintf(c.err, "note: the link %s on %s is not in the file (--prune deletes such)\n", l.Name, l.NetDev)
	}
}

// changeRows shows changes; as messages too where nothing is done.
func changeRows(list []netlinkmgr.Change, messages bool) []row {
	rows := make([]row, len(list))
	for i, x := range list {
		r := &rows[i]
		r.add(field{"change", string(x.Kind), x.Text})
		for _, f := range []field{{key: "ifname", value: x.Link}, {key: "netdev", value: x.NetDev}, {key: "netns", value: x.NetNS}, {key: "from", value: x.From}, {key: "to", value: x.To}} {
			if f.value != "" {
				r.add(f)
			}
		}
		r.add(field{key: "text", value: x.Text})
		if messages && x.Message != nil {
			hex := fmt.Sprintf("%x", x.Message)
			r.add(field{"message", hex, "\n    " + hex})
		}
	}
	return rows
}

func (t *rdmaTool) linkDiff() *cobra.Command {
	var prune bool
	cmd := t.setupCommand("diff", "Show what 'link apply' would change", `diff shows what apply would change: + a link that is added, - one that is deleted,
~ what is set to another value. Exit status: 0 when nothing differs, 1 when
something does, 2 on errors.`,
		func(c *rdmaCall, _ string, s netlinkmgr.Setup) error {
			return linkDiff(c, s, netlinkmgr.SetupOptions{Prune: prune})
		})
	pruneFlag(cmd, &prune)
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		var differ *exitStatus
		var usage *usageError
		if err == nil || errors.As(err, &differ) || errors.As(err, &usage) {
			return err
		}
		return &exitStatus{code: 2, err: err}
	}
	return cmd
}

func linkDiff(c *rdmaCall, s netlinkmgr.Setup, o netlinkmgr.SetupOptions) error {
	p, err := c.m.PlanSetup(c.ctx, s, o)
	if err != nil {
		return err
	}
	c.remarks(p)
	var list []netlinkmgr.Change
	for _, x := range p.Changes {
		if x.Kind != netlinkmgr.ChangeModule { // how, not what
			list = append(list, x)
		}
	}
	rows := changeRows(list, false)
	for i := range rows {
		sign := map[netlinkmgr.ChangeKind]string{netlinkmgr.ChangeAdd: "+ ", netlinkmgr.ChangeDelete: "- "}[list[i].Kind]
		if sign == "" {
			sign = "~ "
		}
		rows[i].fields[0].text = sign + rows[i].fields[0].text
	}
	if err := c.print(rows); err != nil || len(list) == 0 {
		return err
	}
	return &exitStatus{code: 1}
}

func (t *rdmaTool) linkSave() *cobra.Command {
	cmd := t.command("save", "Print the rxe links there are as TOML for 'link apply'", func(c *rdmaCall, args []string) error {
		w := words{"link save", args}
		if err := w.end(); err != nil {
			return err
		}
		s, err := c.m.SaveSetup(c.ctx)
		if err != nil {
			return err
		}
		if !c.json {
			return writeSetup(c.out, s)
		}
		e := json.NewEncoder(c.out)
		e.SetEscapeHTML(false)
		if c.pretty {
			e.SetIndent("", "    ")
		}
		return e.Encode(setupDocument(s))
	})
	cmd.Long = `save prints the rxe links of this network namespace and of those that have names,
with the MTU of their network devices and the network namespace mode, as TOML
that 'link apply' takes.`
	return cmd
}
