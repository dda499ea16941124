/* What is read into the history: runs of the SOMA profiler, JSON that a program left, lines of metrics, a command as
 * typed. The first byte chooses. */
#include "history/import_soma.h"
#include "history/jsonmetrics.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_command(const uint8_t *data, size_t size)
{
    char *text = strndup((const char *)data, size);
    char *key = text ? history_command_key_of_text(text) : NULL;
    char *again = key ? history_command_key_of_text(key) : NULL;
    free(again);
    free(key);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct history_run run = {0};
    size_t bad = 0;
    if (!size)
        return 0;
    switch (data[0] % 4) {
    case 0:
        history_import_soma("python a.py", data + 1, size - 1, &run);
        break;
    case 1:
        history_run_add_json(&run, "stats", data + 1, size - 1);
        break;
    case 2:
        history_run_add_metric_lines(&run, data + 1, size - 1, &bad);
        break;
    default:
        check_command(data + 1, size - 1);
        break;
    }
    history_run_release(&run);
    return 0;
}
