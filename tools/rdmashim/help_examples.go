package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// examples are those of commands that bring none themselves, by what follows
// "rdmashim". Each line begins with the program's name; the tests take them apart as
// the program would.
var examples = map[string]string{
	"": `rdmashim demo
rdmashim doctor
rdmashim explain RETRY_EXC_ERR`,
	"abi": `rdmashim abi
rdmashim abi CREATE_QP
rdmashim abi -j`,
	"devices": `rdmashim devices
rdmashim devices --device soft:127.0.0.1 -j`,
	"version": `rdmashim version
rdmashim version -j`,
	"monitor": `rdmashim monitor
rdmashim monitor -j | jq -r .event_type`,

	"dev": `rdmashim dev
rdmashim -j dev show rxe0`,
	"dev show": `rdmashim dev show
rdmashim dev show rxe0 -d`,
	"link": `rdmashim link
rdmashim link up eth0
sudo rdmashim link add rxe0 type rxe netdev eth0`,
	"link add": `sudo rdmashim link add rxe0 type rxe netdev eth0
rdmashim link add rxe0 type rxe netdev eth0 --dry-run`,
	"link delete": `sudo rdmashim link delete rxe0`,
	"link gid": `rdmashim link gid
rdmashim link gid rxe0/1 -j`,
	"link show": `rdmashim link show
rdmashim link show rxe0/1 -d`,
	"link unit": `rdmashim link unit eth0 | sudo tee /etc/systemd/system/rdma-eth0.service`,
	"link up": `sudo rdmashim link up
sudo rdmashim link up eth0 --mtu 4200 --name rxe0`,
	"resource": `rdmashim resource
rdmashim resource show qp`,
	"resource show": `rdmashim resource show rxe0
rdmashim resource show qp link rxe0/1 state RTS
rdmashim resource show mr -j`,
	"statistic": `rdmashim statistic
rdmashim statistic show link rxe0/1 -jp`,
	"statistic show": `rdmashim statistic show link rxe0/1
rdmashim statistic show -j`,
	"system":      `rdmashim system`,
	"system set":  `sudo rdmashim system set netns exclusive`,
	"system show": `rdmashim system show -j`,

	"vm":       `rdmashim vm run -- rdma link show`,
	"vm build": `rdmashim vm build -o initramfs.cpio`,
	"vm demo":  `rdmashim vm demo`,
	"vm exec":  `go test -c -o host.test ./kshim/host && rdmashim vm exec host.test -test.v`,
	"vm run": `rdmashim vm run -- rdma link show
rdmashim vm run -q -- uname -r`,
	"vm shell": `rdmashim vm shell`,
	"vm test":  `rdmashim vm test ./kshim/host -- -test.v`,
}

// addExamples gives them to the commands below root that have none.
func addExamples(root *cobra.Command) {
	for _, c := range append(root.Commands(), root) {
		_, path, _ := strings.Cut(c.CommandPath(), " ")
		if text, ok := examples[path]; ok && c.Example == "" {
			c.Example = "  " + strings.ReplaceAll(text, "\n", "\n  ")
		}
		if c != root {
			addExamples(c)
		}
	}
}
