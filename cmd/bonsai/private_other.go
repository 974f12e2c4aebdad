//go:build !unix

package main

import "net"

// listenPrivate binds a Unix socket, which has the permissions of its folder here.
func listenPrivate(path string) (net.Listener, error) { return net.Listen("unix", path) }
