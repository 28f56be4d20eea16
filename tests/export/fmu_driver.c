#include "fmu_model.h"
#include "fmi2_interface.h"
#include <stdlib.h>
static void log_message(fmi2ComponentEnvironment e, fmi2String i, fmi2Status s, fmi2String c, fmi2String m, ...)
{ (void) e, (void) i, (void) s, (void) c, (void) m; }
int main(void)
{
    static const fmi2CallbackFunctions functions = {log_message, calloc, free, NULL, NULL};
    fmi2Component one = fmi2Instantiate("one", fmi2CoSimulation, FMU_GUID, "", &functions, 0, 0);
    enum { REALS = FMU_INPUTS + FMU_OUTPUTS + 2 * FMU_STATES };
    fmi2ValueReference all[REALS];
    fmi2Real before[REALS], after[REALS];
    fmi2FMUstate state = NULL, again = NULL;
    fmi2Byte *bytes;
    size_t size, i;

    for (i = 0; i < REALS; i++)
        all[i] = (fmi2ValueReference) i;
    if (fmi2Instantiate("two", fmi2CoSimulation, "{another}", "", &functions, 0, 0) ||
        fmi2Instantiate("two", fmi2ModelExchange, FMU_GUID, "", &functions, 0, 0))
        return 1;
    if (fmi2SetupExperiment(one, 0, 0.0, 0.0, 0, 0.0) || fmi2EnterInitializationMode(one) ||
        fmi2ExitInitializationMode(one))
        return 2;
    for (i = 0; i < 9; i++)
        if (fmi2DoStep(one, i * FMU_DT, FMU_DT, 1))
            return 3;
    if (fmi2GetFMUstate(one, &state) || fmi2SerializedFMUstateSize(one, state, &size) ||
        fmi2GetReal(one, all, REALS, before))
        return 4;
    bytes = malloc(size);
    if (fmi2SerializeFMUstate(one, state, bytes, size) || fmi2DeSerializeFMUstate(one, bytes, size, &again) ||
        !fmi2DeSerializeFMUstate(one, bytes, size - 1, &again) || !fmi2SerializeFMUstate(one, state, bytes, size - 1))
        return 5;
    if (fmi2DoStep(one, 9 * FMU_DT, FMU_DT, 1) || fmi2SetFMUstate(one, again) || fmi2GetReal(one, all, REALS, after))
        return 6;
    for (i = 0; i < REALS; i++)
        if (before[i] != after[i])
            return 7;
    free(bytes);
    if (fmi2FreeFMUstate(one, &state) || state || fmi2FreeFMUstate(one, &again) || fmi2Terminate(one))
        return 8;
    fmi2FreeInstance(one);
    return 0;
}
