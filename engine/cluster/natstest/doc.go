// Package natstest runs real nats-server processes for tests.
//
// [Start] makes a cluster of them on loopback ports: JetStream in a directory of the test, every
// message synced, no WebSocket, MQTT or leaf node listeners. The servers reach each other through
// proxies of the test alone, so that one can be cut off from the others, killed, and started again where it stood.
// The program is the one that bench/peer/nats pins, with shorter elections, built by the go command into its own cache.
//
// The processes themselves are those of bench/proc. Everything ends with the test that started it; a server dies also where the test's process is
// killed or panics.
package natstest
