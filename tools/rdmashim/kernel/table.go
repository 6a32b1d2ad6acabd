package kernel

import (
	"slices"
	"strings"
)

// command is a row of the console's table.
type command struct {
	name    string
	args    string // see args; [X] may be left out, X... is the rest of the line
	does    string
	example string
	run     func(*console, *args) error
}

func (c *command) usage() string { return strings.TrimSpace(c.name + " " + c.args) }

var commands []command

func init() {
	commands = []command{ // help reads the table
		{"help", "", "lists the commands", "help", (*console).help},
		{"insmod", "MODULE [PARAM...]", "loads a module; each PARAM of soft or sim is a device", "insmod soft 127.0.0.5", (*console).insmod},
		{"rmmod", "MODULE", "unloads a module", "rmmod soft", (*console).rmmod},
		{"unregister", "DEVICE", "takes a device away from its programs", "unregister soft0", (*console).unregister},
		{"ps", "", "lists the programs that a kernel of serve has", "ps", (*console).ps},
		{"lsmod", "", "lists the loaded modules", "lsmod", (*console).lsmod},
		{"dmesg", "", "prints the kernel log", "dmesg", (*console).dmesg},
		{"ls", "[DIR]", "lists a directory", "ls /dev/infiniband", (*console).ls},
		{"cat", "FILE", "prints a file", "cat /sys/class/infiniband/soft0/ports/1/state", (*console).cat},
		{"trace", "on|off", "prints the system calls of every command", "trace on", (*console).trace},
		{"open", "DEVICE", "opens a device; what follows is made on it, until another open", "open soft0", (*console).open},
		{"close", "DEVICE", "closes a device, with what was made on it", "close soft0", (*console).close},
		{"reg_mr", "NAME BYTES [ACCESS]", "allocates a buffer and registers it", "reg_mr buf 4096 local_write,remote_write", (*console).regMR},
		{"dereg_mr", "MR", "deregisters a buffer and frees it", "dereg_mr buf", (*console).deregMR},
		{"query_mr", "MR", "prints a region's address, keys and access", "query_mr buf", (*console).queryMR},
		{"fill", "MR TEXT...", "writes text to the beginning of a buffer", "fill buf Test message", (*console).fill},
		{"hexdump", "MR [OFFSET] [BYTES]", "prints a buffer, 64 bytes of it", "hexdump buf 0 16", (*console).hexdump},
		{"create_qp", "SENDS RECEIVES", "makes a queue pair: qp1, qp2 ...", "create_qp 16 16", (*console).createQP},
		{"destroy_qp", "QP", "destroys a queue pair", "destroy_qp qp1", (*console).destroyQP},
		{"query_qp", "QP", "prints a queue pair's number, state and depths", "query_qp qp1", (*console).queryQP},
		{"connect", "QP QP", "connects two queue pairs, or one to itself", "connect qp1 qp2", (*console).connect},
		{"post_write", "QP MR OFFSET REMOTE RKEY BYTES", "posts a WRITE; REMOTE and RKEY may be a region's name", "post_write qp1 send 0 recv recv 12", (*console).postWrite},
		{"post_read", "QP MR OFFSET REMOTE RKEY BYTES", "posts a READ, as post_write", "post_read qp1 recv 0 send send 12", (*console).postRead},
		{"post_send", "QP MR BYTES", "posts a SEND", "post_send qp1 send 12", (*console).postSend},
		{"post_recv", "QP MR OFFSET BYTES", "posts a receive", "post_recv qp2 recv 0 4096", (*console).postRecv},
		{"poll_cq", "QP [COUNT]", "polls once, or waits until COUNT completions came", "poll_cq qp1 1", (*console).pollCQ},
		{"exit", "", "ends the console", "exit", func(*console, *args) error { return errExit }},
	}
}

func find(name string) *command {
	i := slices.IndexFunc(commands, func(c command) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return &commands[i]
}

func (c *console) help(*args) error {
	for _, cmd := range commands {
		c.printf("%-42s %s\n    %s\n", cmd.usage(), cmd.does, cmd.example)
	}
	return nil
}
