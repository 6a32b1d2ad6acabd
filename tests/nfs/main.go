package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/rdmashim/rdmashim/uapi"
)

func main() {
	device := flag.String("device", "soft", "serve on the device `NAME`")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: nfs [--device NAME] DIRECTORY")
		os.Exit(2)
	}
	if err := serve(*device, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "nfs:", err)
		os.Exit(1)
	}
}

func serve(name, dir string) error {
	d, err := uapi.Open(name, uapi.OpenConfig{})
	if err != nil {
		return err
	}
	defer d.Close()
	return export(d, dir, func(address string) {
		fmt.Printf("listening: mount -t nfs -o %s %s:/ /mnt\n", mountOptions(address), address)
	})
}
