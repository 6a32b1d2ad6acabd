// Ranks of gloo sum a mebibyte of floats over its verbs transport, each on a
// device of its own; they meet in a directory: "gloo RANK RANKS DIRECTORY".
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <gloo/allreduce_ring_chunked.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	const int rank = atoi(argv[1]), ranks = atoi(argv[2]);
	gloo::transport::ibverbs::attr attr;
	attr.name = "rxe0", attr.port = 1, attr.index = 0;
	auto device = gloo::transport::ibverbs::CreateDevice(attr);
	auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
	gloo::rendezvous::FileStore store(argv[3]);
	context->connectFullMesh(store, device);
	std::vector<float> data(1 << 18);
	for (size_t i = 0; i < data.size(); i++)
		data[i] = (rank + 1) * (i % 1000);
	gloo::AllreduceRingChunked<float> sum(context, {data.data()}, data.size());
	sum.run();
	for (size_t i = 0; i < data.size(); i++)
		if (data[i] != ranks * (ranks + 1) / 2 * (i % 1000)) {
			fprintf(stderr, "rank %d: %zu is %f\n", rank, i, data[i]);
			return 1;
		}
	printf("rank %d of %d has the sum\n", rank, ranks);
	fflush(stdout);
	// gloo throws where a rank takes down what its last send has not left.
	std::vector<std::string> all;
	for (int i = 0; i < ranks; i++)
		all.push_back("done" + std::to_string(i));
	store.set(all[rank], {1});
	store.wait(all);
	_Exit(0);
}
