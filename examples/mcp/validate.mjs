// Checks an OpenAPI document against the specification: node validate.mjs FILE
import SwaggerParser from "@apidevtools/swagger-parser";

const api = await SwaggerParser.validate(process.argv[2]);
console.log(`OpenAPI ${api.swagger}: ${api.info.title}, ${Object.keys(api.paths).length} calls`);
