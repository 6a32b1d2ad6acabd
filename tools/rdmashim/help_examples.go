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
	"client": `rdmashim client 192.0.2.7 FILE
rdmashim client 127.0.0.1:7471 FILE --loss 1% --seed 7`,
	"devices": `rdmashim devices
rdmashim devices --device soft:127.0.0.1 -j`,
	"server": `rdmashim server
rdmashim server --listen :7471 --max-total 8000000000`,
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

	"perf atomic":     `rdmashim perf atomic lat`,
	"perf atomic bw":  `rdmashim perf atomic bw -q 4`,
	"perf atomic lat": `rdmashim perf atomic lat -n 1000`,
	"perf read":       `rdmashim perf read bw`,
	"perf read bw":    `rdmashim perf read bw -s 1048576 -D 5`,
	"perf read lat":   `rdmashim perf read lat -s 64`,
	"perf send":       `rdmashim perf send bw`,
	"perf send bw":    `rdmashim perf send bw -s 64 -q 4 192.0.2.7`,
	"perf send lat":   `rdmashim perf send lat -s 64 --events`,
	"perf write":      `rdmashim perf write bw`,
	"perf write bw": `rdmashim perf write bw -s 1048576
rdmashim perf write bw --all -j 192.0.2.7`,
	"perf write lat": `rdmashim perf write lat -s 64`,
	"perf server":    `rdmashim perf server`,
	"perf suite": `rdmashim perf suite --rounds 3
rdmashim perf suite -j --run '^READ'`,

	"ping": `rdmashim ping server
rdmashim ping client 127.0.0.1`,
	"ping client": `rdmashim ping client 192.0.2.7`,
	"ping server": `rdmashim ping server --once`,
	"sample": `rdmashim sample write-read server
rdmashim sample write-read client 127.0.0.1`,
	"sample write-imm": `rdmashim sample write-imm server
rdmashim sample write-imm client 127.0.0.1`,
	"sample write-imm client": `rdmashim sample write-imm client 192.0.2.7`,
	"sample write-imm server": `rdmashim sample write-imm server --once`,
	"sample write-read": `rdmashim sample write-read server
rdmashim sample write-read client 127.0.0.1`,
	"sample write-read client": `rdmashim sample write-read client 192.0.2.7`,
	"sample write-read server": `rdmashim sample write-read server --once`,

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
